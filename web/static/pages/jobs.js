// The list of runs.

import { h, fill, count, loss, zen, zens, money, duration, ago, chip, spark, table, tile, meter, empty, plural, link, segments, many, audits } from '../dom.js';
import { all, get, stream } from '../api.js';

const address = j => '/jobs/' + encodeURIComponent(j.id);

// The start page of a server that shows one run is that run.
export async function start(page) {
  const { jobs } = await get('/v1/jobs?limit=2', page.signal);
  if (jobs.length === 1) { page.go(address(jobs[0]), true); page.again(); return new Promise(() => {}); }
  return list(page);
}

export async function list({ root, query, signal, go }) {
  const known = new Map((await all('/v1/jobs', 'jobs', signal)).map(j => [j.id, j]));
  const chosen = new Set();
  let text = query.get('q') ?? '', state = query.get('state') ?? '';
  const body = h('div', {}), tiles = h('div.tiles', {});
  const compareButton = h('button.act', { type: 'button', disabled: true, onclick: () => go('/compare?runs=' + [...chosen].map(encodeURIComponent).join(',')) }, 'Compare');
  const search = h('input', { type: 'search', placeholder: 'Filter by name', 'aria-label': 'Filter by name', value: text, oninput: e => { text = e.target.value; keep(); draw(); } });
  const states = segments('State', [['', 'All'], ['running', 'Running'], ['done', 'Done'], ['stopped', 'Stopped']], state, value => { state = value; keep(); draw(); });

  const keep = () => go('/jobs?' + new URLSearchParams({ ...(text && { q: text }), ...(state && { state }) }), true);

  function pick(j) {
    return h('input', { type: 'checkbox', 'aria-label': 'Compare ' + j.name, checked: chosen.has(j.id), onchange: e => {
      if (e.target.checked) chosen.add(j.id); else chosen.delete(j.id);
      compareButton.disabled = chosen.size < 2;
      compareButton.textContent = chosen.size > 1 ? `Compare ${chosen.size} runs` : 'Compare';
    } });
  }

  function draw() {
    const runs = [...known.values()], busy = runs.filter(j => j.state === 'running');
    const sum = f => runs.reduce((n, j) => n + f(j), 0);
    fill(tiles, tile('Runs', count(runs.length), `${busy.length} running`), tile('Tokens trained', many(sum(j => j.tokens))),
      tile('Throughput', count(busy.reduce((n, j) => n + j.tokens_per_second, 0)), 'tokens a second, running'),
      tile('Cost', zen(sum(j => j.coin ? 0 : j.paid_uzen + j.fee_uzen)), 'ZEN, fees included'),
      tile('Audits', count(sum(j => j.audits.drawn)), audits(['drawn', 'passed', 'failed', 'moot', 'missed'].reduce((all, k) => ({ ...all, [k]: sum(j => j.audits[k]) }), {}))));
    const shown = runs.filter(j => (!state || j.state === state) && (j.name + ' ' + j.id).toLowerCase().includes(text.toLowerCase()));
    if (!runs.length) return fill(body, empty('No run is here yet. Train one, and it appears by itself:', 'starling train examples/quickstart.yaml'));
    const write = zens(shown.filter(j => !j.coin).map(j => j.paid_uzen + j.fee_uzen).filter(Boolean));
    fill(body, shown.length ? table('Runs', [
      { head: h('span.visually-hidden', {}, 'Compare'), plain: true, cell: pick },
      { head: 'Run', wide: true, plain: true, cell: j => [h('div.run', {}, link(address(j), j.name), j.kind === 'simulation' && chip('simulation', 'plain')), !j.name.includes(j.id) && h('div', {}, h('code.soft', {}, j.id)),
        j.reason && j.state !== 'running' && h('div.small.soft', {}, j.reason.text)] },
      { head: 'State', cell: j => chip(j.state) },
      { head: 'Progress', cell: j => j.steps ? [h('span.small', {}, `${count(j.step)} of ${count(j.steps)}`), meter(j.step / j.steps, `${j.step} of ${j.steps} steps`)] : h('span.small', {}, plural(j.step, 'step')) },
      { head: 'Loss', cell: j => spark(j.spark, `training loss of ${j.name}`) },
      { head: 'Eval loss', number: true, cell: j => loss(j.eval_loss) },
      { head: 'Workers', number: true, minor: true, cell: j => count(j.workers) },
      { head: 'Cost, ZEN', number: true, cell: j => j.coin ? [money(j.paid_uzen + j.fee_uzen, j), h('div.small.soft', {}, 'of ' + money(j.budget_uzen, j))] : [write(j.paid_uzen + j.fee_uzen), j.budget_uzen > 0 && h('div.small.soft', {}, 'of ' + zen(j.budget_uzen))] },
      { head: 'Time', number: true, cell: j => j.state === 'running' && j.seconds_left > 0 ? duration(j.seconds_left) + ' left' : h('span.soft', {}, ago(j.updated)) },
    ], shown, j => j.id) : h('p.soft', {}, 'No run matches.'));
  }
  draw();
  fill(root, h('div.head', {}, h('h1', {}, 'Jobs')), h('p.lead', {}, 'Runs and simulations of this folder, the latest first.'), tiles,
    h('div.bar', {}, search, states, h('span.grow', {}), compareButton), h('section.card.jobs', {}, body));
  stream('/v1/events', { job: j => { known.set(j.id, j); if (root.isConnected && !root.contains(document.activeElement?.closest('table'))) draw(); } }, signal);
}
