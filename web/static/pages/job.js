// One run: what it is, how it goes, who took part, and why each was paid.

import { h, fill, count, loss, zen, bytes, duration, ago, chip, table, tile, meter, empty, plural, link, words, short, copyable, card, many, word } from '../dom.js';
import { all, get, stream } from '../api.js';
import { chart, mapping, axes, download } from '../chart.js';
import { disputes, receipts, lineage, map, fetched } from './record.js';

const charts = [
  ['Loss', 'nats a token', [['loss', 'a', 'training'], ['eval_loss', 'b', 'eval']]],
  ['Gradient norm', 'before clipping, the mean over the workers that tell it', [['grad_norm', 'i']]],
  ['Learning rate', '', [['learning_rate', 'a']]],
  ['Throughput', 'tokens a second', [['tokens_per_second', 'd']]],
  ['Time of a round', 'seconds', [['round_seconds', 'g']]],
  ['Bytes of a round', 'bytes', [['bytes_up', 'a', 'sent'], ['bytes_down', 'b', 'received']]],
  ['Active workers', '', [['workers', 'd']]],
  ['Agreement between workers', 'mean cosine of their updates with the combined one', [['agreement', 'c']]],
  ['Signatures under a checkpoint', '', [['signatures', 'c']]],
  ['Audits', 'of the units of a round', [['audits_passed', 'i', 'same bits'], ['audits_failed', 'e', 'a fault found']]],
  ['Work that was not paid', 'receipts of zero', [['rejected', 'e']]],
  ['Cost so far', 'ZEN', [['cost', 'c']]],
  ['Earned in a round', 'ZEN', [['earned', 'd']]],
  ['Perplexity', 'on held-out data', [['perplexity', 'b']]],
];

const whole = new Set(['Active workers', 'Signatures under a checkpoint', 'Audits', 'Work that was not paid']);

export async function detail({ root, params: [id, at = 'overview'], query, signal, go }) {
  const base = '/v1/jobs/' + encodeURIComponent(id), here = '/jobs/' + encodeURIComponent(id);
  let job = await get(base, signal), news = { receipts: 0, disputes: job.disputes };
  const view = { x: query.get('x') ?? 'step', log: query.get('log') === '1', weight: Number(query.get('smooth') ?? 0), from: query.get('from'), to: query.get('to') };
  document.title = job.name + ' · Starling';

  const head = h('div', {}), tabs = h('nav.tabs', { 'aria-label': 'Parts of the run' }), body = h('div', {});
  const parts = [['overview', 'Overview'], ['charts', 'Charts'], ['workers', 'Workers'], ['lineage', 'Lineage'], ['receipts', 'Receipts'], ['disputes', 'Disputes'], ['samples', 'Samples'], ['log', 'Log'], ['job', 'Job']];

  function drawHead() {
    const change = job.first_eval_loss !== undefined && job.eval_loss !== undefined ? `from ${loss(job.first_eval_loss)}` : 'nothing held out';
    fill(head, h('p.crumb', {}, link('/jobs', 'Jobs'), ' / ' + job.id),
      h('div.head', {}, h('h1', {}, job.name), chip(job.state), job.kind === 'simulation' && chip('simulation', 'plain'), job.phase && job.state === 'running' && h('span.soft', {}, job.phase)),
      job.reason && (job.state === 'running' ? h('p.lead', {}, job.reason.text) : h('div.note' + (/halted|failed/.test(job.state) ? '.bad-note' : ''), {}, h('p', {}, job.reason.text), job.reason.next && h('p.small', {}, /^starling /.test(job.reason.next) ? h('code.command', {}, job.reason.next) : job.reason.next))),
      h('div.progress', {}, meter(job.step / (job.steps || job.step || 1), `${job.step} of ${job.steps || job.step} steps`)),
      h('div.tiles', {},
        tile('Eval loss', loss(job.eval_loss), change),
        tile('Inner steps', count(job.step), job.steps ? `of ${count(job.steps)}, ${plural(job.round, 'round')}` : plural(job.round, 'round')),
        tile('Tokens', many(job.tokens), job.tokens_per_second ? many(job.tokens_per_second) + ' a second' : ''),
        tile(job.state === 'running' ? 'Time left' : 'Time', duration(job.state === 'running' ? job.seconds_left || NaN : job.seconds), job.kind === 'simulation' ? 'virtual' : plural(job.workers, 'worker')),
        tile('Bytes moved', bytes(job.bytes_up), bytes(job.bytes_down) + ' received'),
        tile('Audits', `${count(job.audits.passed)} / ${count(job.audits.drawn)}`, job.audits.failed ? plural(job.audits.failed, 'fault') + ' found' : 'same bits', job.audits.failed ? 'bad' : ''),
        tile('Cost', zen(job.paid_uzen + job.fee_uzen), `ZEN of ${zen(job.budget_uzen)}`)));
    fill(tabs, parts.map(([key, name]) => h('a', { href: here + (key === 'overview' ? '' : '/' + key), 'aria-current': key === at ? 'page' : undefined }, name,
      key === 'disputes' && job.disputes > 0 && h('span.n', {}, job.disputes))));
  }

  const keep = () => {
    const q = new URLSearchParams({ ...(view.x !== 'step' && { x: view.x }), ...(view.log && { log: 1 }), ...(view.weight && { smooth: view.weight }), ...(view.from && { from: Math.round(view.from), to: Math.round(view.to) }) });
    go(location.pathname + (q.size ? '?' + q : ''), true);
  };

  // The series, and the figures that show them.
  let data = null, figures = [];
  async function load(names, points = 1000) {
    const q = new URLSearchParams({ points, ...(names && { series: names }), ...(view.from && { from: view.from, to: view.to }) });
    data = await get(`${base}/metrics?${q}`, signal);
  }
  function series([name, color, label]) {
    const s = data.series.find(s => s.name === (name === 'perplexity' ? 'eval_loss' : name));
    if (!s) return null;
    const to = mapping(data.axis, view.x);
    return { label: label ?? s.label, color, x: view.x === 'step' ? s.step : s.step.map(to), y: name === 'perplexity' ? s.value.map(Math.exp) : s.value, dots: s.of === 'round' };
  }
  function options([title, unit, list], more) {
    const [xLabel, xUnit] = axes[view.x];
    return { title, unit, series: list.map(series).filter(Boolean), xLabel, xUnit, log: view.log && title === 'Loss', whole: whole.has(title), weight: title === 'Loss' || title === 'Throughput' ? view.weight : 0, name: `${job.name} ${title}`, ...more,
      onzoom: async (from, to) => {
        if (view.x !== 'step' && from !== undefined) return;
        [view.from, view.to] = from === undefined ? [null, null] : [Math.max(0, from), to];
        keep();
        await load(at === 'charts' ? undefined : 'loss,eval_loss');
        redraw();
      } };
  }
  function redraw() { for (const [figure, c, more] of figures) figure.update(options(c, more)); }
  function make(c, more) {
    const o = options(c, more);
    if (!o.series.length) return null;
    const figure = chart(o);
    figures.push([figure, c, more]);
    return h('section.card', {}, figure);
  }
  function controls(full) {
    const segments = h('div.segments', { role: 'group', 'aria-label': 'Horizontal axis' }, Object.keys(axes).map(x => h('button', { type: 'button', 'aria-pressed': String(x === view.x), onclick: async e => {
      view.x = x;
      for (const b of segments.children) b.setAttribute('aria-pressed', String(b === e.target));
      if (view.from) { view.from = view.to = null; await load(full ? undefined : 'loss,eval_loss'); }
      keep(); redraw();
    } }, x)));
    return h('div.bar', {}, segments,
      h('label', {}, 'Smoothing', h('input', { type: 'range', min: 0, max: 0.99, step: 0.01, value: view.weight, oninput: e => { view.weight = Number(e.target.value); redraw(); }, onchange: keep })),
      h('label', {}, h('input', { type: 'checkbox', checked: view.log, onchange: e => { view.log = e.target.checked; keep(); redraw(); } }), 'Logarithmic loss'),
      h('span.grow', {}), h('button.act', { type: 'button', onclick: async () => download(job.name + '-metrics.csv', await (await fetch(base + '/metrics.csv')).blob()) }, 'All metrics as CSV'));
  }

  const drawn = {
    async overview() {
      const [, samples, checkpoints] = await Promise.all([load('loss,eval_loss'), get(base + '/samples', signal), get(base + '/lineage?limit=1000&order=desc', signal)]);
      const curve = make(charts[0], { height: 320, legend: true });
      const struck = new Set(job.disputes ? (await get(base + '/disputes', signal)).disputes.filter(d => d.verdict === 'worker_lied').map(d => d.round) : []);
      const last = checkpoints.checkpoints[0], sample = samples.samples.at(-1);
      fill(body, controls(false), h('div.columns', {}, h('div', {},
        curve ?? h('section.card', {}, empty(job.state === 'running' ? 'The first round is being trained. Its losses appear when it is attested.' : 'No round was attested.')),
        card('Rounds', h('p.lead.small', {}, 'Each mark is an attested checkpoint', struck.size ? '; red ones had work that a verdict found wrong, and were done again.' : '.'), rounds(job, struck, here))),
      h('div', {},
        card('Where the budget went', budget(job)),
        last && card('Latest checkpoint', h('dl.facts', {}, h('dt', {}, 'Round'), h('dd', {}, count(last.round)), h('dt', {}, 'State root'), h('dd', {}, copyable(last.state_root, 14, 8)), h('dt', {}, 'Signed by'), h('dd', {}, plural(last.signers.length, 'member'))),
          job.kind === 'run' && job.state === 'done' && job.folder && h('p.small.soft', {}, h('code', {}, `starling verify ${word(job.folder)}`), ' computes it again, bit for bit.')),
        sample && card(`Sample after step ${count(sample.step)}`, h('div.sample', {}, h('mark', {}, sample.prompt), sample.text)),
        card('Job', facts(job)))));
    },
    async charts() {
      await load();
      const list = charts.map(c => make(c, { height: c[0] === 'Loss' ? 240 : 200 })).filter(Boolean);
      fill(body, controls(true), list.length ? h('div.grid2', {}, list) : h('section.card', {}, empty('Nothing is measured yet. The first values come with the first attested round.')),
        list.length > 0 && h('p.soft.small', {}, `Drawn from ${count(Math.max(...data.series.map(s => s.count)))} values, thinned to what can be seen. Drag over a part of the loss to look closer.`));
    },
    async workers() {
      const [{ members, rounds: n, audited, links }, { disputes: list }] = await Promise.all([get(base + '/workers', signal), get(base + '/disputes', signal)]);
      if (job.parties) return fill(body, parties(job));
      if (!members.length) return fill(body, h('section.card', {}, empty('Nobody has signed or earned anything yet.')));
      const most = Math.max(...members.filter(m => m.role !== 'consumer' && m.role !== 'pool').map(m => m.uzen), 1);
      fill(body, card('Who works for it', h('p.lead', {}, 'Circles grow with the units that were done. A dashed line joins a verifier with whose work it computed again, the thicker the oftener; a red one ended in a verdict. A grey line joins two who fetched from each other, the thicker the more.'), map(members, audited, list, links)),
        fetched(links, links.length ? 'As the hosts of the run counted it, or, where it was trained on a network, as its members reported it to the chain.' : 'Nothing is known of it. Members of a network report what they fetched from each other, once it is a mebibyte.'),
        card('Who earned what', table('Members', [
          { head: 'Member', cell: m => link('/workers/' + encodeURIComponent(m.id), short(m.id, 14, 6)) }, { head: 'Role', cell: m => m.role || 'member' },
          { head: 'Units', number: true, cell: m => count(m.units) }, { head: 'Audits', number: true, cell: m => m.audits.drawn ? `${m.audits.passed} of ${m.audits.drawn}` : '–' },
          { head: 'Signed', number: true, cell: m => m.signed ? `${count(m.signed)} of ${count(n)}` : '–' },
          { head: 'Earned, ZEN', number: true, cell: m => [zen(m.uzen), m.role !== 'consumer' && m.role !== 'pool' && meter(m.uzen / most, 'share')] },
          { head: 'Receipts', number: true, cell: m => link(`${here}/receipts?who=${encodeURIComponent(m.id)}`, count(m.paid_receipts + m.zero_receipts)) },
          { head: 'Why not more', wide: true, cell: m => [m.slashed_uzen > 0 && h('div.bad', {}, `slashed ${zen(m.slashed_uzen)} ZEN of its stake`), m.zeros.map(z => h('div.soft.small', {}, z))] },
        ], members)));
    },
    async lineage() { fill(body, await lineage(base, signal)); },
    async receipts() { fill(body, await receipts(base, here, query, signal, go)); },
    async disputes() { fill(body, disputes((await get(base + '/disputes', signal)).disputes, job)); },
    async samples() {
      const { samples } = await get(base + '/samples', signal), prompts = [...new Set(samples.map(s => s.prompt))];
      fill(body, prompts.length ? prompts.map(p => card(['Prompt ', h('code', {}, JSON.stringify(p))], table('Samples', [
        { head: 'Step', number: true, cell: s => count(s.step) }, { head: 'How the model goes on', wide: true, cell: s => h('div.sample', {}, h('mark', {}, s.prompt), s.text) },
      ], samples.filter(s => s.prompt === p).reverse()))) : h('section.card', {}, empty('The job asks for no samples. Name prompts in its file:', 'eval: {prompts: ["Once upon a time"]}')));
    },
    async log() {
      const pre = h('pre.log', { tabindex: 0, 'aria-label': 'Log' });
      let to = 0, from = -64 << 10;
      const more = async () => {
        const l = await get(`${base}/logs?from=${from}&limit=131072`, signal), stick = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 40;
        for (const line of l.lines) pre.append(h('span' + (/level=WARN/.test(line) ? '.warn' : /level=ERROR/.test(line) ? '.error' : ''), {}, line + '\n'));
        while (pre.childNodes.length > 5000) pre.firstChild.remove();
        from = to = l.to;
        if (stick) pre.scrollTop = pre.scrollHeight;
        if (!pre.childNodes.length) fill(pre, h('span.soft', {}, 'The log is empty.'));
      };
      fill(body, card('Log', h('p.lead.small', {}, 'The end of starling.log in the folder of the run; new lines come by themselves.'), pre));
      await more();
      const t = setInterval(() => more().catch(() => {}), 2000);
      signal.addEventListener('abort', () => clearInterval(t));
      requestAnimationFrame(() => { pre.scrollTop = pre.scrollHeight; });
    },
    async job() {
      fill(body, card('What was asked for', facts(job)), card('For programs', h('dl.facts', {}, [['Job', job.job], ['Run', job.id], ['State root', job.state_root], ['Begun', job.started], ['Last change', job.updated]].map(([k, v]) => [h('dt', {}, k), h('dd', {}, v ? copyable(v, 40, 12) : '–')]),
        ['', 'metrics', 'lineage', 'receipts', 'disputes', 'samples', 'workers', 'cost'].map(p => [h('dt', {}, p || 'API'), h('dd', {}, h('a', { href: base + (p && '/' + p), target: '_blank' }, h('code', {}, base + (p && '/' + p))))]))));
    },
  };

  drawHead();
  fill(root, head, tabs, body);
  await (drawn[at] ?? drawn.overview)();

  // Live: what is new goes into the head, and into whatever part shows it.
  let busy = false, again = false;
  async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      if (at === 'charts' || at === 'overview' && figures.length) { await load(at === 'charts' ? undefined : 'loss,eval_loss'); redraw(); }
      if (at === 'overview' && !figures.length || at === 'workers' || at === 'lineage' || at === 'samples') { figures = []; await drawn[at](); }
    } catch (e) { if (!signal.aborted && !e.problem) console.error(e); }
    busy = false;
    if (again) { again = false; refresh(); }
  }
  stream(base + '/events', {
    update(u) {
      const ended = job.state !== u.job.state, counted = u.receipts !== news.receipts || u.disputes !== news.disputes;
      job = u.job;
      if (!head.isConnected) return;
      drawHead();
      if (u.metrics || u.checkpoints || u.samples || ended) refresh();
      else if (counted && (at === 'workers' || at === 'disputes' || at === 'receipts') && news.receipts) drawn[at]().catch(() => {});
      news = u;
    },
    reset(u) { job = u.job; drawHead(); figures = []; drawn[at]?.().catch(() => {}); },
  }, signal);
}

function rounds(job, struck, here) {
  const shown = Math.min(job.rounds || job.round, 400), from = Math.max(0, (job.rounds || job.round) - shown);
  return h('div.rounds', {}, Array.from({ length: shown }, (_, i) => {
    const r = from + i + 1, done = r <= job.round;
    return h('a' + (struck.has(r) ? '.struck' : done ? '.done' : r === job.round + 1 && job.state === 'running' ? '.next' : ''),
      done ? { href: struck.has(r) ? here + '/disputes' : here + '/lineage', title: `round ${r}`, 'aria-label': `round ${r}${struck.has(r) ? ', disputed' : ', attested'}` } : { 'aria-hidden': 'true' });
  }));
}

function budget(job) {
  const rest = Math.max(0, job.budget_uzen - job.paid_uzen - job.fee_uzen - job.refunded_uzen);
  const shares = [['paid for work', job.paid_uzen, 'a'], ['fee', job.fee_uzen, 'c'], ['refunded', job.refunded_uzen, 'f'], ['not spent yet', rest, 'g']].filter(s => s[1] > 0);
  let x = 0;
  const bar = h('svg.budget', { viewBox: '0 0 100 6', preserveAspectRatio: 'none', role: 'img', 'aria-label': 'Shares of the budget' }, shares.map(([, v, color]) => {
    const w = 100 * v / (job.budget_uzen || 1), r = h('rect.fill-' + color, { x, width: Math.max(0, w - 0.3), height: 6 });
    x += w;
    return r;
  }));
  return [bar, h('dl.facts', {}, shares.map(([name, v, color]) => [h('dt', {}, h('i.key.back-' + color, {}), name), h('dd.number', {}, zen(v) + ' ZEN')]), h('dt', {}, 'Budget'), h('dd.number', {}, zen(job.budget_uzen) + ' ZEN'),
    job.slashed_uzen > 0 && [h('dt.bad', {}, 'Slashed from stakes'), h('dd.number.bad', {}, zen(job.slashed_uzen) + ' ZEN')])];
}

function facts(job) {
  return job.facts?.length ? h('dl.facts', {}, job.facts.map(f => [h('dt', {}, f.name), h('dd', {}, f.value)])) : h('p.soft', {}, 'The folder does not hold the job file.');
}

function parties(job) {
  return card('Parties of the simulation', table('Parties', [
    { head: 'Party', cell: p => p.name }, { head: 'Sent', number: true, cell: p => bytes(p.bytes_up) }, { head: 'Received', number: true, cell: p => bytes(p.bytes_down) },
    { head: 'Worked', number: true, cell: p => duration(p.worked_seconds) }, { head: 'Earned, ZEN', number: true, cell: p => zen(p.paid_uzen) }, { head: 'Slashed, ZEN', number: true, cell: p => p.slashed_uzen ? h('span.bad', {}, zen(p.slashed_uzen)) : '–' },
    { head: 'Out of the run', wide: true, cell: p => words(p.out) || '–' },
  ], job.parties));
}
