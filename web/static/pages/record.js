// The books of a run: lineage, receipts and disputes.

import { h, fill, count, zen, zens, money, bytes, table, empty, plural, link, words, copyable, card, chip, person } from '../dom.js';
import { get } from '../api.js';

export async function lineage(base, signal) {
  const list = h('div', {}), more = h('button.act', { type: 'button', hidden: true }, 'Older ones');
  let shown = [], after = '', total = 0;
  async function page() {
    const l = await get(`${base}/lineage?order=desc&limit=100&after=${after}`, signal);
    shown = shown.concat(l.checkpoints);
    after = l.after;
    total = l.total;
    more.hidden = !l.has_more;
    fill(list, shown.length ? table('Lineage', [
      { head: 'Round', number: true, cell: c => count(c.round) },
      { head: 'State root', cell: c => copyable(c.state_root, 20, 8) },
      { head: 'Checkpoint', cell: c => copyable(c.checkpoint, 12, 6) },
      { head: 'Signed by', wide: true, cell: c => h('details', {}, h('summary', {}, plural(c.signers.length, 'member')), c.signers.map(s => h('div', {}, person(s.id)))) },
      { head: 'Updates', cell: c => h('details', {}, h('summary', {}, plural(c.updates.length, 'update')), c.updates.map((u, i) => h('div', {}, `${i} `, copyable(u, 12, 6)))) },
    ], shown) : empty('No checkpoint is attested yet. The first one comes when every unit of the first round is committed.'));
  }
  more.addEventListener('click', () => page());
  await page();
  return card('Lineage', h('p.lead', {}, `${plural(total, 'checkpoint')}, each signed by more than two thirds of the members over its state root: the Merkle root of every tensor, so the same root is the same model, bit for bit.`), list, more);
}

const kinds = ['work', 'audit', 'slash', 'bounty', 'fee', 'deposit', 'refund'];

export async function receipts(base, here, query, signal, go) {
  const view = { who: query.get('who') ?? '', kind: query.get('kind') ?? '', zero: query.get('zero') === 'true' };
  const list = h('div', {}), summary = h('p.lead.small', { 'aria-live': 'polite' }), more = h('button.act', { type: 'button', hidden: true }, 'More');
  let shown = [], after = '';
  async function page(fresh) {
    if (fresh) { shown = []; after = ''; }
    const q = new URLSearchParams({ limit: 500, after, ...(view.who && { who: view.who }), ...(view.kind && { kind: view.kind }), ...(view.zero && { zero: true }) });
    const l = await get(`${base}/receipts?${q}`, signal);
    shown = shown.concat(l.receipts);
    after = l.after ?? '';
    more.hidden = !l.has_more;
    summary.textContent = `${plural(l.total, 'receipt')}. Every attempt at a unit and every audit ends in one, also when it comes to nothing; they are issued when a round is final.`;
    const rounds = [...Map.groupBy(shown, r => r.round)].sort(([a], [b]) => a - b);
    fill(list, rounds.length ? rounds.map(([n, all]) => round(n, all, here, rounds.length < 3 || view.zero)) : empty('No receipt matches.'));
  }
  const change = key => e => { view[key] = key === 'zero' ? e.target.checked : e.target.value; go(location.pathname + '?' + new URLSearchParams(Object.entries(view).filter(([, v]) => v)), true); page(true); };
  more.addEventListener('click', () => page());
  await page(true);
  return [h('div.bar', {}, h('input', { type: 'search', placeholder: 'An account, by its beginning', 'aria-label': 'Account', value: view.who, onchange: change('who') }),
    h('select', { 'aria-label': 'Kind', onchange: change('kind') }, h('option', { value: '' }, 'of every kind'), kinds.map(k => h('option', { value: k, selected: k === view.kind }, k))),
    h('label', {}, h('input', { type: 'checkbox', checked: view.zero, onchange: change('zero') }), 'Only those of zero')), card('Receipts', summary, list, more)];
}

// round is a line for the receipts of a round, with what they come to, and, opened, the receipts. One in which all is as usual is closed.
function round(n, all, here, open) {
  const usual = r => r.amount > 0 && /^(work|audit|refund)$/.test(r.kind) && r.dispute === undefined, over = all.every(r => r.kind === 'refund');
  const odd = all.filter(r => !usual(r)), paid = all.reduce((sum, r) => sum + (over || r.kind === 'work' || r.kind === 'audit' ? r.amount : 0), 0), body = h('div', {});
  const counts = kinds.map(k => [k, all.filter(r => r.kind === k).length]).filter(([, c]) => c);
  const e = h('details.round', { ontoggle: () => { if (e.open && !body.firstChild) fill(body, receiptTable(all, here)); } },
    h('summary', {}, h('b', {}, over ? 'At the end' : `Round ${count(n)}`), h('span.soft', {}, counts.map(([k, c]) => `${count(c)} ${k}`).join(', ')),
      odd.length > 0 && h('span.chip' + (odd.some(r => r.kind === 'slash') ? '.bad' : ''), {}, odd.some(r => r.kind === 'slash') ? 'slashed' : `${count(odd.length)} to read`), h('span.number', {}, all[0].coin ? money(paid, all[0]) : zen(paid, 6) + ' ZEN')), body);
  if (open || odd.some(r => r.kind === 'slash')) { e.open = true; fill(body, receiptTable(all, here)); }
  return e;
}

function receiptTable(all, here) {
  const own = zens(all.filter(r => !r.coin).map(r => r.amount).filter(Boolean)), coins = all.some(r => r.coin), write = r => coins ? money(r.amount, r) : own(r.amount);
  return table('Receipts', [
    { head: 'No.', number: true, cell: r => count(r.seq) }, { head: 'For', cell: r => [r.kind, (r.kind === 'work' || r.kind === 'audit') && h('span.soft', {}, ` unit ${r.unit}`)] },
    { head: 'Who', cell: r => r.who.startsWith('starling1') ? person(r.who) : r.who },
    { head: coins ? 'Amount' : 'ZEN', number: true, cell: r => r.kind === 'slash' ? h('span.bad', {}, '−' + write(r)) : r.amount ? write(r) : h('span.bad', {}, '0') },
    { head: 'Why', wide: true, cell: r => h('details', {}, h('summary', {}, r.why), h('div.why', {}, r.arithmetic.map(a => h('p', {}, a)), r.fix && h('p', {}, h('b', {}, 'To do: '), r.fix), h('p', {}, `Issued at height ${count(r.height)}.`),
      r.dispute !== undefined && h('p', {}, link(`${here}/disputes?n=${r.dispute}`, 'The dispute, move by move')))) },
  ], all);
}

const verdicts = {
  worker_lied: ['The referee computed the tile: the worker was wrong', 'bad'], false_challenge: ['The referee computed the tile: the challenge was wrong', 'bad'],
  planted: ['Planted fault: the worker tested whether its verifier looks. No stake is lost.', 'good'], moot: ['Closed: another dispute had decided the question. No stake is lost.', 'good'], open: ['Still open', 'good'],
};

// A dispute descends from a round to one tile. Who speaks stands on its side; what is left of the question narrows downward.
export function disputes(list, job) {
  if (!list.length) return h('section.card', {}, empty(job.state === 'running' ? 'Nobody disputes anything.' : 'There was none: nobody’s work was found to differ.', job.kind === 'run' ? 'starling train examples/quickstart.yaml --dishonest 1' : undefined));
  return list.map((d, n) => {
    const [text, tone] = verdicts[d.verdict] ?? [words(d.verdict), 'good'], step = /step (\d+) is the first|of step (\d+)/.exec(d.log.map(m => m.what).join(' ')), op = /of (\w+), operator (\d+)/.exec(d.log.at(-1)?.what ?? '') ?? /operator (\d+), made/.exec(d.log.map(m => m.what).join(' '));
    const tile = /tile (\d+) of (\d+)/.exec(d.log.at(-1)?.what ?? '');
    const down = [`round ${d.round}`, `unit ${d.unit}`, step && `step ${step[1] ?? step[2]}`, op && (op[2] ? `operator ${op[2]}, ${op[1]}` : `operator ${op[1]}`), tile && `tile ${tile[1]}`].filter(Boolean);
    return h('section.card', { id: 'dispute-' + n },
      h('div.head', {}, h('h2', {}, `Round ${d.round}, unit ${d.unit}`), chip(words(d.verdict), d.verdict === 'worker_lied' || d.verdict === 'false_challenge' ? 'bad' : 'plain')),
      h('div.funnel', { role: 'group', 'aria-label': 'What the question narrowed down to' }, down.map((b, i) => [i > 0 && '→', h('b', {}, b)])),
      h('div.moves', {}, h('div.move.heads', {}, h('span', {}, 'Worker ', person(d.worker)), h('span', {}), h('span', {}, 'Verifier ', person(d.challenger))),
        d.log.map(m => h('div.move.' + (m.by === 'worker' ? 'worker' : 'verifier'), {}, h('div.said', {}, m.what), h('div.when', { title: 'height of the block' }, count(m.height))))),
      h('p.verdict' + (tone === 'good' ? '.good' : ''), {}, text),
      d.leaf && h('p.soft.small', {}, `${d.moves} moves, ${bytes(d.hash_bytes)} of hashes; the chain recomputed one ${d.leaf} from ${bytes(d.leaf_bytes)} of input`, d.leaf_ms > 0 && ` in ${d.leaf_ms.toPrecision(2)} ms`, '.'));
  });
}
