// One run: what it is, how it goes, who took part, and why each was paid.

import { h, fill, count, loss, perByte, zen, zens, money, column, coinOf, bytes, duration, chip, table, tile, meter, empty, plural, link, words, copyable, card, many, word, facts, segments, audits, person } from '../dom.js';
import { get, stream } from '../api.js';
import { axes, download } from '../chart.js';
import { figures, lossChart } from './figures.js';
import { disputes, receipts, lineage } from './record.js';
import { map, heat } from './map.js';

const parts = [['overview', 'Overview'], ['charts', 'Charts'], ['workers', 'Workers'], ['lineage', 'Lineage'], ['receipts', 'Receipts'], ['disputes', 'Disputes'], ['samples', 'Samples'], ['log', 'Log'], ['job', 'Job']];

export async function detail({ root, params: [id, at = 'overview'], query, signal, go }) {
  const base = '/v1/jobs/' + encodeURIComponent(id), here = '/jobs/' + encodeURIComponent(id);
  let job = await get(base, signal), news = { receipts: 0, disputes: job.disputes };
  const view = { x: query.get('x') ?? 'step', log: query.get('log') === '1', weight: Number(query.get('smooth') ?? 0), from: query.get('from'), to: query.get('to') };
  document.title = job.name + ' · Starling';

  const head = h('div', {}), tabs = h('nav.tabs', { 'aria-label': 'Parts of the run' }), body = h('div', {});

  function drawHead() {
    const running = job.state === 'running', change = job.first_eval_loss !== undefined && job.eval_loss !== undefined ? `${perByte(job)}from ${loss(job.first_eval_loss)}` : 'nothing held out';
    fill(head, h('p.crumb', {}, link('/jobs', 'Jobs'), ' / ' + job.id),
      h('div.head', {}, h('h1', {}, job.name), chip(job.state), job.kind === 'simulation' && chip('simulation', 'plain'), job.phase && running && h('span.soft', {}, job.phase)),
      job.reason && (running ? h('p.lead', {}, job.reason.text) : h('div.note' + (/halted|failed/.test(job.state) ? '.bad-note' : ''), {}, h('p', {}, job.reason.text), job.reason.next && h('p.small', {}, /^starling /.test(job.reason.next) ? h('code.command', {}, job.reason.next) : job.reason.next))),
      job.steps > 0 && h('div.progress', {}, meter(job.step / job.steps, `${job.step} of ${job.steps} steps`)),
      h('div.tiles', {},
        tile('Eval loss', loss(job.eval_loss), change),
        tile('Inner steps', count(job.step), [job.steps > 0 && `of ${count(job.steps)}, `, attested(job)]),
        tile('Tokens', many(job.tokens), job.tokens_per_second ? many(job.tokens_per_second) + ' a second' : ''),
        tile(running ? 'Time left' : 'Time', duration(running ? job.seconds_left || NaN : job.seconds), job.kind === 'simulation' ? 'virtual' : plural(job.workers, 'worker')),
        tile('Bytes sent', bytes(job.bytes_up), bytes(job.bytes_down) + ' received'),
        tile('Audits', count(job.audits.drawn), audits(job.audits), job.audits.failed ? 'bad' : ''),
        tile('Cost', money(job.paid_uzen + job.fee_uzen, job).split(' ')[0], job.budget_uzen ? `${coinOf(job).name} of ${money(job.budget_uzen, job).split(' ')[0]}` : coinOf(job).name)));
    fill(tabs, parts.map(([key, name]) => h('a', { href: here + (key === 'overview' ? '' : '/' + key), 'aria-current': key === at ? 'page' : undefined }, name,
      key === 'disputes' && job.disputes > 0 && h('span.n', {}, job.disputes))));
  }

  const keep = () => {
    const q = new URLSearchParams({ ...(view.x !== 'step' && { x: view.x }), ...(view.log && { log: 1 }), ...(view.weight && { smooth: view.weight }), ...(view.from && { from: Math.round(view.from), to: Math.round(view.to) }) });
    go(location.pathname + (q.size ? '?' + q : ''), true);
  };

  // The series, and the figures that show them.
  const wanted = () => at === 'charts' ? undefined : 'loss,eval_loss';
  const state = { job: () => job, view, data: null, async zoom(from, to) {
    if (view.x !== 'step' && from !== undefined) return;
    [view.from, view.to] = from === undefined ? [null, null] : [Math.max(0, from), to];
    keep();
    await load();
    drawings.redraw();
  } };
  const drawings = figures(state);
  async function load() {
    const names = wanted(), q = new URLSearchParams({ points: 1000, ...(names && { series: names }), ...(view.from && { from: view.from, to: view.to }) });
    state.data = await get(`${base}/metrics?${q}`, signal);
  }
  function controls() {
    return h('div.bar', {}, segments('Horizontal axis', Object.keys(axes).map(x => [x, x]), view.x, async x => {
      view.x = x;
      if (view.from) { view.from = view.to = null; await load(); }
      keep();
      drawings.redraw();
    }),
    h('label', {}, 'Smoothing', h('input', { type: 'range', min: 0, max: 0.99, step: 0.01, value: view.weight, oninput: e => { view.weight = Number(e.target.value); drawings.redraw(); }, onchange: keep })),
    h('label', {}, h('input', { type: 'checkbox', checked: view.log, onchange: e => { view.log = e.target.checked; keep(); drawings.redraw(); } }), 'Logarithmic loss'),
    h('span.grow', {}), h('button.act', { type: 'button', onclick: async () => download(job.name + '-metrics.csv', await (await fetch(base + '/metrics.csv')).blob()) }, 'All metrics as CSV'));
  }

  // The parts of the overview beside its curve: they change with every update of a run that goes on.
  const strip = h('div', {}), spent = h('div', {}), latest = h('div', {}), copies = h('div', {}), sampled = h('div', {});
  async function around() {
    const [samples, checkpoints, struck] = await Promise.all([get(base + '/samples', signal), get(base + '/lineage?limit=1&order=desc', signal),
      job.disputes ? get(base + '/disputes', signal).then(d => d.disputes.map((x, n) => ({ ...x, n })).filter(x => x.verdict === 'worker_lied')) : []]);
    const last = checkpoints.checkpoints[0], sample = samples.samples.at(-1);
    fill(strip, card('Rounds', rounds(job, struck, here)));
    fill(spent, card('Where the budget went', budget(job)));
    fill(copies, pushed(job));
    fill(latest, last && card('Latest checkpoint', facts([['Round', count(last.round)], ['State root', copyable(last.state_root, 14, 8)], ['Signed by', plural(last.signers.length, 'member')]]),
      job.kind === 'run' && job.state === 'done' && job.folder && h('p.small.soft', {}, h('code', {}, `starling job verify ${word(job.folder)}`), ' computes it again, bit for bit.')));
    fill(sampled, sample && card(`Sample after step ${count(sample.step)}`, h('div.sample', {}, h('mark', {}, sample.prompt), sample.text)));
  }

  const drawn = {
    async overview() {
      await Promise.all([load(), around()]);
      const curve = drawings.one(lossChart, { height: 320, legend: true });
      fill(body, controls(), h('div.columns', {}, h('div', {},
        curve ?? h('section.card', {}, empty(job.state === 'running' ? 'The first round is being trained. Its losses appear when it is attested.' : 'No round was attested.')), strip, sampled),
      h('div', {}, spent, latest, copies, card('Job', about(job)))));
    },
    async charts() {
      await load();
      const list = drawings.all();
      fill(body, controls(), list.length ? list : h('section.card', {}, empty('Nothing is measured yet. The first values come with the first attested round.')),
        list.length > 0 && h('p.soft.small.below', {}, `Drawn from ${drawings.values()} values, thinned to what can be seen. Drag over a part of the loss to look closer.`));
    },
    async workers() {
      if (job.parties) return fill(body, parties(job));
      const [{ members, rounds: n, audited, links, stages }, { disputes: list }] = await Promise.all([get(base + '/workers', signal), get(base + '/disputes', signal)]);
      if (!members.length) return fill(body, h('section.card', {}, empty('Nobody has signed or earned anything yet.')));
      fill(body, card('Who works for it', h('p.lead.small', {}, 'Circles grow with the units that were done. A dashed line joins a verifier with whose work it computed again, the thicker the oftener; a red one ended in a verdict.'), map(members, audited, list)),
        stages && staged(stages), card('Who earned what', earned(members, n, here)),
        heat(links, links.length ? 'As the hosts of the run counted it, or, where it was trained on a network, as its members reported it to the chain.' : 'Nothing is known of it. Members of a network report what they fetched from each other, once it is a mebibyte.'));
    },
    async lineage() { fill(body, await lineage(base, signal)); },
    async receipts() { fill(body, await receipts(base, here, query, signal, go)); },
    async disputes() {
      fill(body, disputes((await get(base + '/disputes', signal)).disputes, job));
      if (query.get('n')) requestAnimationFrame(() => document.getElementById('dispute-' + query.get('n'))?.scrollIntoView());
    },
    async samples() {
      const { samples } = await get(base + '/samples', signal), prompts = [...new Set(samples.map(s => s.prompt))];
      fill(body, prompts.length ? prompts.map(p => card(['Prompt ', h('code', {}, JSON.stringify(p))], table('Samples', [
        { head: 'Step', number: true, cell: s => count(s.step) }, { head: 'How the model goes on', wide: true, cell: s => h('div.sample', {}, h('mark', {}, s.prompt), s.text) },
        ...(samples.some(s => s.prompt === p && s.reward != null) ? [{ head: 'Reward', number: true, cell: s => s.reward == null ? '' : String(Math.round(s.reward * 1e4) / 1e4) }] : []),
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
      fill(body, h('div.columns', {}, card('What was asked for', about(job)), card('For programs',
        facts([['Job', job.job], ['Run', job.id], ['State root', job.state_root], ['Begun', job.started], ['Last change', job.updated]].map(([k, v]) => [k, v ? copyable(v, 24, 8) : '–'])),
        h('h3', {}, 'The same by the API'), h('ul.addresses', {}, ['', 'metrics', 'lineage', 'receipts', 'disputes', 'samples', 'workers', 'cost'].map(p => h('li', {}, h('a', { href: base + (p && '/' + p), target: '_blank' }, h('code', {}, base + (p && '/' + p)))))))));
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
      if (at === 'charts' || at === 'overview' && drawings.any()) {
        await Promise.all([load(), at === 'overview' && around()]);
        if (at === 'charts' && drawings.stale()) await drawn.charts(); else drawings.redraw();
      } else if (at === 'overview' || at === 'workers' || at === 'lineage' || at === 'samples') await drawn[at]();
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
      if (at === 'overview') { fill(spent, card('Where the budget went', budget(job))); fill(copies, pushed(job)); }
      if (u.metrics || u.checkpoints || u.samples || ended) refresh();
      else if (counted && (at === 'workers' || at === 'disputes' || at === 'receipts') && news.receipts) drawn[at]().catch(() => {});
      news = u;
    },
    reset(u) { job = u.job; drawHead(); drawn[at]?.().catch(() => {}); },
  }, signal);
}

// There is one count of rounds: those whose checkpoint a quorum attested.
const attested = job => job.rounds ? `${count(job.round)} of ${plural(job.rounds, 'round')} attested` : `${plural(job.round, 'round')} attested`;

function rounds(job, struck, here) {
  const all = job.rounds || job.round, shown = Math.min(all, 400), from = all - shown, red = new Set(struck.map(d => d.round));
  const marks = Array.from({ length: shown }, (_, i) => {
    const r = from + i + 1;
    return h('i' + (red.has(r) ? '.struck' : r <= job.round ? '.done' : r === job.round + 1 && job.state === 'running' ? '.next' : ''), { title: `round ${r}` });
  });
  return [h('p.lead.small', {}, attested(job), struck.length > 0 && '; red ones had work that a verdict found wrong, and were done again', '.'),
    h('div.rounds', { role: 'img', 'aria-label': `${attested(job)}${red.size ? `; a verdict found work wrong in ${[...red].map(r => 'round ' + r).join(', ')}` : ''}` }, marks),
    struck.length > 0 && h('p.small.below', {}, struck.slice(0, 20).map((d, i) => [i > 0 && ' · ', link(`${here}/disputes?n=${d.n}`, `Round ${d.round}, unit ${d.unit}: what was wrong`)]))];
}

// The parts of a budget. What was spent of it is often too little to be seen: a part that is there is at least a sliver.
function budget(job) {
  const spent = job.paid_uzen + job.fee_uzen, rest = Math.max(0, job.budget_uzen - spent - job.refunded_uzen), over = job.state !== 'running' && job.state !== 'queued';
  const shares = [['paid for work', job.paid_uzen, 'd'], ['fee', job.fee_uzen, 'g'], ['refunded', job.refunded_uzen, 'f'], [over ? 'not spent' : 'not spent yet', rest, 'line']].filter(s => s[1] > 0);
  const widths = shares.map(s => Math.max(1.2, 100 * s[1] / (job.budget_uzen || 1))), all = widths.reduce((a, b) => a + b, 0), write = v => money(v, job);
  let x = 0;
  const bar = h('svg.budget', { viewBox: '0 0 100 6', preserveAspectRatio: 'none', role: 'img', 'aria-label': shares.map(([name, v]) => `${name} ${write(v)}`).join(', ') }, shares.map(([, , color], i) => {
    const w = 100 * widths[i] / all, r = h('rect.fill-' + color, { x, width: Math.max(0, w - 0.4), height: 6 });
    x += w;
    return r;
  }));
  return [job.budget_uzen > 0 && h('p.small.soft', {}, `${(100 * spent / job.budget_uzen).toPrecision(2)} % of the budget was spent`, over ? '.' : ' so far.'), bar,
    h('dl.facts.sums', {}, shares.map(([name, v, color]) => [h('dt', {}, h('i.key.back-' + color, {}), name), h('dd.number', {}, write(v))]), h('dt', {}, 'Budget'), h('dd.number', {}, write(job.budget_uzen)),
      job.slashed_uzen > 0 && [h('dt.bad', {}, 'Slashed from stakes'), h('dd.number.bad', {}, zen(job.slashed_uzen) + ' ZEN')])];
}

// Copies of the model in stores outside of the network.
function pushed(job) {
  return job.pushes?.length && card('Copies of the model', table('Copies of the model', [
    { head: 'To', wide: true, cell: p => [p.address && p.state === 'done' ? h('a', { href: p.address, rel: 'noopener', target: '_blank' }, p.to) : p.to, p.from && h('div.soft.small', {}, p.from.split('/').pop())] },
    { head: 'State', cell: p => [chip(p.state, { done: 'good', failed: 'bad' }[p.state] ?? 'plain'), p.reason && h('div.soft.small', {}, p.reason.text, p.reason.next && '; ' + p.reason.next)] },
    { head: 'Sent', number: true, cell: p => p.bytes ? `${bytes(p.sent_bytes)} of ${bytes(p.bytes)}` : '–' },
  ], job.pushes));
}

function about(job) {
  return job.facts?.length ? facts(job.facts.map(f => [f.name, f.value])) : h('p.soft', {}, 'The folder does not hold the job file.');
}

// staged shows the stages of a model that is cut: who holds them, how long they wait, and what they exchange.
function staged(stages) {
  const share = x => `${Math.round(x * 100)} %`;
  return card('Stages', h('p.lead.small', {}, 'Each holds a part of the layers, and sends what comes of them to the next. How long it waits for others follows from the schedule of its tasks and their operations, without the time of links.'), table('Stages', [
    { head: 'Stage', cell: s => String(stages.indexOf(s)) }, { head: 'Layers', cell: s => s.layers },
    { head: 'Computes', wide: true, cell: s => h('div', {}, meter(s.busy, `computes for ${share(s.busy)} of a unit, and waits for ${share(1 - s.busy)}`), h('span.small.soft', {}, `${share(s.busy)}, waits ${share(1 - s.busy)}`)) },
    { head: 'Late by', number: true, cell: s => s.late ? plural(s.late, 'step') : '–' },
    { head: 'Sent', number: true, cell: s => bytes(s.sent_bytes) }, { head: 'Received', number: true, cell: s => bytes(s.received_bytes) },
    { head: 'Held by', wide: true, cell: s => s.holders.length ? s.holders.slice(0, 12).map(x => h('div', {}, person(x.id), ` ${plural(x.units, 'unit')}`)) : '–' },
  ], stages));
}

function earned(members, n, here) {
  const pays = members.filter(m => m.role !== 'consumer' && m.role !== 'pool'), most = Math.max(...pays.map(m => m.uzen), 1), write = column(members, m => m.uzen), coin = coinOf(members[0] ?? {}).name;
  return table('Members', [
    { head: 'Member', cell: m => person(m.id) }, { head: 'Role', cell: m => m.role || 'member' },
    { head: 'Units', number: true, cell: m => count(m.units) }, { head: 'Audits', number: true, cell: m => m.audits.drawn ? h('span', { title: audits(m.audits) }, `${count(m.audits.passed)} of ${count(m.audits.drawn)}`) : '–' },
    { head: 'Signed', number: true, cell: m => m.signed ? `${count(m.signed)} of ${count(n)}` : '–' },
    { head: 'Earned' + (coin === 'ZEN' ? ', ZEN' : ''), number: true, cell: m => [write(m), pays.includes(m) && meter(m.uzen / most, 'share')] },
    { head: 'Receipts', number: true, cell: m => link(`${here}/receipts?who=${encodeURIComponent(m.id)}`, count(m.paid_receipts + m.zero_receipts)) },
    { head: 'Unpaid, and why', wide: true, cell: m => [m.slashed_uzen > 0 && h('div.bad', {}, `slashed ${zen(m.slashed_uzen)} ZEN of its stake`), m.zeros.map(z => h('div.soft.small', {}, z))] },
  ], pays.concat(members.filter(m => !pays.includes(m))));
}

function parties(job) {
  const write = zens(job.parties.map(p => p.paid_uzen));
  return card('Parties of the simulation', table('Parties', [
    { head: 'Party', cell: p => p.name }, { head: 'Sent', number: true, cell: p => bytes(p.bytes_up) }, { head: 'Received', number: true, cell: p => bytes(p.bytes_down) },
    { head: 'Worked', number: true, cell: p => duration(p.worked_seconds) }, { head: 'Earned, ZEN', number: true, cell: p => write(p.paid_uzen) }, { head: 'Slashed, ZEN', number: true, cell: p => p.slashed_uzen ? h('span.bad', {}, zen(p.slashed_uzen)) : '–' },
    { head: 'Out of the run', wide: true, cell: p => words(p.out) || '–' },
  ], job.parties));
}
