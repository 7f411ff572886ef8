// Several runs over each other.

import { h, fill, count, loss, zen, column, bytes, duration, table, empty, link, card, chip, audits } from '../dom.js';
import { all, get } from '../api.js';
import { chart, mapping, axes, axisOf, colors } from '../chart.js';

const names = [['eval_loss', 'Eval loss'], ['perplexity', 'Perplexity on held-out data'], ['bits_per_byte', 'Eval loss in bits a byte'], ['loss', 'Training loss'], ['grad_norm', 'Gradient norm'], ['agreement', 'Agreement between workers'], ['learning_rate', 'Learning rate'], ['tokens_per_second', 'Throughput'], ['round_seconds', 'Time of a round'], ['workers', 'Active workers'], ['bytes_up', 'Sent in a round'], ['bytes_down', 'Received in a round'],
  ['audits_passed', 'Audits passed'], ['audits_failed', 'Audits that found a fault'], ['audits_moot', 'Audits settled otherwise'], ['cost', 'Cost so far'], ['earned', 'Earned in a round'], ['signatures', 'Signatures'], ['rejected', 'Work not paid']];
const whole = new Set(['workers', 'audits_passed', 'audits_failed', 'audits_moot', 'signatures', 'rejected']), apart = new Set(['loss', 'eval_loss', 'perplexity', 'bits_per_byte']);
const most = 8;

export async function compare({ root, query, signal, go }) {
  const jobs = await all('/v1/jobs', 'jobs', signal);
  if (jobs.length < 2) return fill(root, h('h1', {}, 'Compare'), h('section.card', {}, empty('There is only one run here. Train another, or play a sweep in the simulator:', 'starling sim job.yaml --sweep strategy.sync_steps=5,10,20 --dir out/sweep')));
  let chosen = (query.get('runs') ?? '').split(',').map(decodeURIComponent).filter(id => jobs.some(j => j.id === id)).slice(0, most);
  if (!chosen.length) chosen = jobs.slice(0, 2).map(j => j.id);
  const view = { metric: query.get('metric') ?? 'eval_loss', x: query.get('x') ?? 'step', log: query.get('log') === '1', weight: Number(query.get('smooth') ?? 0) };
  const area = h('div', {}), equal = h('div', {}), diff = h('div', {}), picks = h('div.bar', {});
  const keep = () => go('/compare?' + new URLSearchParams({ runs: chosen.map(encodeURIComponent).join(','), ...(view.metric !== 'eval_loss' && { metric: view.metric }), ...(view.x !== 'step' && { x: view.x }), ...(view.log && { log: 1 }), ...(view.weight && { smooth: view.weight }) }), true);
  const twice = new Map();
  for (const j of jobs) twice.set(j.name, (twice.get(j.name) ?? 0) + 1);
  const called = j => twice.get(j.name) > 1 && j.name !== j.id ? `${j.name} (${j.id})` : j.name;
  const color = id => colors[chosen.indexOf(id) % colors.length];
  let figure;

  async function draw() {
    const details = await Promise.all(chosen.map(async id => ({ job: await get('/v1/jobs/' + encodeURIComponent(id), signal), metrics: await get(`/v1/jobs/${encodeURIComponent(id)}/metrics?points=1000&series=${view.metric === 'perplexity' ? 'eval_loss' : view.metric}`, signal) })));
    const [xLabel, xUnit] = axisOf(view.x, details.map(d => d.metrics));
    const series = details.map(({ job, metrics }) => {
      const s = metrics.series[0] ?? { step: [], value: [] }, to = mapping(metrics, view.x);
      return { label: called(job), color: color(job.id), x: view.x === 'step' ? s.step : s.step.map(to), y: view.metric === 'perplexity' ? s.value.map(Math.exp) : s.value, dots: true };
    });
    const same = equals(series);
    const title = names.find(n => n[0] === view.metric)?.[1] ?? view.metric, unit = view.metric === 'perplexity' ? '' : [...new Set(details.map(d => d.metrics.series[0]?.unit).filter(Boolean))].join(' or ');
    const options = { title, unit, series, xLabel, xUnit, log: view.log, whole: whole.has(view.metric), zero: !apart.has(view.metric), weight: view.weight, height: 380, legend: true, name: 'compare ' + title };
    if (figure) figure.update(options); else fill(area, figure = chart(options));
    fill(equal, same.map(list => h('p.small', {}, list.join(' and '), ' have the same values: one is drawn dashed over the other.')));
    const shown = details.map(d => d.job), cost = column(shown, j => j.paid_uzen + j.fee_uzen), pay = column(shown, j => j.paid_uzen), inZen = shown.some(j => j.coin) ? '' : ', ZEN';
    const rows = [['State', d => chip(d.job.state)], ['Eval loss', d => loss(d.job.eval_loss)], ['Bits a byte', d => loss(d.job.bits_per_byte)], ['Inner steps', d => count(d.job.step)], ['Tokens', d => count(d.job.tokens)], ['Time', d => duration(d.job.seconds)], ['Workers', d => count(d.job.workers)],
      ['Sent', d => bytes(d.job.bytes_up)], ['Received', d => bytes(d.job.bytes_down)], ['Cost' + inZen, d => cost(d.job)], ['Earned' + inZen, d => pay(d.job)], ['Slashed, ZEN', d => zen(d.job.slashed_uzen)], ['Audits', d => count(d.job.audits.drawn)], ['How they ended', d => audits(d.job.audits)],
      ['State root', d => h('code', {}, (d.job.state_root ?? '–').slice(0, 16))],
      ...[...new Set(details.flatMap(d => (d.job.facts ?? []).map(f => f.name)))].map(name => [name, d => d.job.facts?.find(f => f.name === name)?.value ?? '–'])];
    const value = (row, d) => { const v = row[1](d); return v instanceof Node ? v.textContent : String(v); };
    fill(diff, table('Differences', [{ head: h('span.visually-hidden', {}, 'What'), plain: true, cell: r => h('b', {}, r[0]) }, ...details.map(d => ({ head: [h('i.key.back-' + color(d.job.id), {}), link('/jobs/' + encodeURIComponent(d.job.id), called(d.job))], label: called(d.job), cell: r => r.same ? h('span.soft', {}, r[1](d)) : r[1](d) }))],
      rows.map(r => Object.assign(r, { same: new Set(details.map(d => value(r, d))).size === 1 }))));
  }
  function pick() {
    fill(picks, h('span.soft', {}, 'Runs'), jobs.slice(0, 40).map(j => h('label', {}, h('input', { type: 'checkbox', checked: chosen.includes(j.id), onchange: e => {
      chosen = e.target.checked ? chosen.concat(j.id).slice(-most) : chosen.filter(id => id !== j.id);
      keep(); pick(); draw();
    } }), chosen.includes(j.id) && h('i.key.back-' + color(j.id), {}), called(j))));
  }
  pick();
  await draw();
  const set = key => e => { view[key] = e.target.type === 'checkbox' ? e.target.checked : key === 'weight' ? Number(e.target.value) : e.target.value; keep(); draw(); };
  fill(root, h('div.head', {}, h('h1', {}, 'Compare')), h('p.lead', {}, 'Curves of several runs in one chart, by step, tokens, time or cost. Equal state roots are equal models.'), picks,
    h('div.bar', {}, h('label', {}, 'Show', h('select', { onchange: set('metric') }, names.map(([k, n]) => h('option', { value: k, selected: k === view.metric }, n)))),
      h('label', {}, 'by', h('select', { onchange: set('x') }, Object.keys(axes).map(k => h('option', { value: k, selected: k === view.x }, k)))),
      h('label', {}, 'Smoothing', h('input', { type: 'range', min: 0, max: 0.99, step: 0.01, value: view.weight, oninput: set('weight') })),
      h('label', {}, h('input', { type: 'checkbox', checked: view.log, onchange: set('log') }), 'Logarithmic')),
    h('section.card', {}, area, equal), card('Side by side', h('p.lead.small', {}, 'What is the same in all of them is grey.'), diff));
}

// equals marks series of equal values, of which one would hide the other, and names them.
function equals(series) {
  const groups = Map.groupBy(series.filter(s => s.x.length), s => s.x.join() + '|' + s.y.join());
  return [...groups.values()].filter(g => g.length > 1).map(g => {
    for (const s of g.slice(1)) s.dash = true;
    return g.map(s => s.label);
  });
}
