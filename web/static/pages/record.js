// The books of a run: lineage, receipts, disputes, and the map of who took part.

import { h, fill, count, zen, bytes, table, empty, plural, link, words, short, copyable, card, chip } from '../dom.js';
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
      { head: 'Signed by', wide: true, cell: c => h('details', {}, h('summary', {}, plural(c.signers.length, 'member')), c.signers.map(s => h('div', {}, link('/workers/' + encodeURIComponent(s.id), short(s.id, 16, 8))))) },
      { head: 'Updates', cell: c => h('details', {}, h('summary', {}, plural(c.updates.length, 'update')), c.updates.map((u, i) => h('div', {}, `${i} `, copyable(u, 12, 6)))) },
    ], shown) : empty('No checkpoint is attested yet. The first one comes when every unit of the first round is committed.'));
  }
  more.addEventListener('click', () => page());
  await page();
  return card('Lineage', h('p.lead', {}, `${plural(total, 'checkpoint')}, each signed by more than two thirds of the members over its state root: the Merkle root of every tensor, so the same root is the same model, bit for bit.`), list, more);
}

const kinds = { work: 'work', audit: 'audit', slash: 'slash', bounty: 'bounty', fee: 'fee', refund: 'refund' };

export async function receipts(base, here, query, signal, go) {
  const view = { who: query.get('who') ?? '', kind: query.get('kind') ?? '', zero: query.get('zero') === 'true' };
  const list = h('div', {}), summary = h('p.lead', { 'aria-live': 'polite' }), more = h('button.act', { type: 'button', hidden: true }, 'More');
  let shown = [], after = '';
  async function page(fresh) {
    if (fresh) { shown = []; after = ''; }
    const q = new URLSearchParams({ limit: 100, after, ...(view.who && { who: view.who }), ...(view.kind && { kind: view.kind }), ...(view.zero && { zero: true }) });
    const l = await get(`${base}/receipts?${q}`, signal);
    shown = shown.concat(l.receipts);
    after = l.after ?? '';
    more.hidden = !l.has_more;
    summary.textContent = `${plural(l.total, 'receipt')}. Every attempt at a unit and every audit ends in one, also when it comes to nothing.`;
    fill(list, shown.length ? table('Receipts', [
      { head: 'No.', number: true, cell: r => r.seq }, { head: 'Round', number: true, cell: r => r.round }, { head: 'For', cell: r => [r.kind, (r.kind === 'work' || r.kind === 'audit') && h('span.soft', {}, ` unit ${r.unit}`)] },
      { head: 'Who', cell: r => link('/workers/' + encodeURIComponent(r.who), short(r.who, 12, 5)) },
      { head: 'uzen', number: true, cell: r => r.kind === 'slash' ? h('span.bad', {}, '−' + count(r.amount)) : r.amount ? count(r.amount) : h('span.bad', {}, '0') },
      { head: 'Why', wide: true, cell: r => h('details', {}, h('summary', {}, r.why), h('div.why', {}, r.arithmetic.map(a => h('p', {}, a)), r.fix && h('p', {}, h('b', {}, 'To do: '), r.fix), h('p', {}, `Issued at height ${count(r.height)}.`),
        r.dispute !== undefined && h('p', {}, link(`${here}/disputes?n=${r.dispute}`, 'The dispute, move by move')))) },
    ], shown) : empty('No receipt matches. Receipts are issued when a round is final.'));
  }
  const change = key => e => { view[key] = key === 'zero' ? e.target.checked : e.target.value; go(location.pathname + '?' + new URLSearchParams(Object.entries(view).filter(([, v]) => v)), true); page(true); };
  more.addEventListener('click', () => page());
  await page(true);
  return [h('div.bar', {}, h('input', { type: 'search', placeholder: 'An account, by its beginning', 'aria-label': 'Account', value: view.who, onchange: change('who') }),
    h('select', { 'aria-label': 'Kind', onchange: change('kind') }, h('option', { value: '' }, 'of every kind'), Object.keys(kinds).map(k => h('option', { value: k, selected: k === view.kind }, k))),
    h('label', {}, h('input', { type: 'checkbox', checked: view.zero, onchange: change('zero') }), 'Only those of zero')), card('Receipts', summary, list, more)];
}

const verdicts = {
  worker_lied: ['The referee computed the tile: the worker was wrong', 'bad'], false_challenge: ['The referee computed the tile: the challenge was wrong', 'bad'],
  planted: ['The worker had planted the fault, to see whether it is found: nobody loses', 'good'], moot: ['The question was settled otherwise: nobody loses', 'good'], open: ['Still open', 'good'],
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
      h('div.moves', {}, h('div.move.heads', {}, h('span', {}, 'Worker ', link('/workers/' + d.worker, short(d.worker, 12, 5))), h('span', {}), h('span', {}, 'Verifier ', link('/workers/' + d.challenger, short(d.challenger, 12, 5)))),
        d.log.map(m => h('div.move.' + (m.by === 'worker' ? 'worker' : 'verifier'), {}, h('div.said', {}, m.what), h('div.when', { title: 'height of the block' }, count(m.height))))),
      h('p.verdict' + (tone === 'good' ? '.good' : ''), {}, text),
      d.leaf && h('p.soft.small', {}, `${d.moves} moves, ${bytes(d.hash_bytes)} of hashes; the chain recomputed one ${d.leaf} from ${bytes(d.leaf_bytes)} of input`, d.leaf_ms > 0 && ` in ${d.leaf_ms.toPrecision(2)} ms`, '.'));
  });
}

// The members of a run: the consumer in the middle, workers around it, verifiers outside. A line is drawn where something
// happened: to who worked for the consumer, between who computed again and whose work it was, and between who fetched and who gave.
export function map(members, audited, disputes, links) {
  const workers = members.filter(m => m.role === 'worker'), verifiers = members.filter(m => m.role === 'verifier');
  const width = 760, height = 360, cx = width / 2, cy = height / 2, units = Math.max(...workers.map(m => m.units), 1);
  const at = (i, n, rx, ry, turn) => { const a = (i + turn) / n * 2 * Math.PI - Math.PI / 2; return [cx + rx * Math.cos(a), cy + ry * Math.sin(a)]; };
  const place = new Map();
  workers.forEach((m, i) => place.set(m.id, at(i, workers.length, 150, 98, 0)));
  verifiers.forEach((m, i) => place.set(m.id, at(i, verifiers.length, 300, 130, 0.62)));
  members.filter(m => m.role === 'consumer').forEach(m => place.set(m.id, [cx, cy]));
  const faults = disputes.filter(d => d.verdict === 'worker_lied').map(d => ({ verifier: d.challenger, worker: d.worker }));
  const lied = a => faults.some(f => f.verifier === a.verifier && f.worker === a.worker), most = Math.max(...audited.map(a => a.audits), 1);
  const checks = audited.concat(faults.filter(f => !audited.some(a => a.verifier === f.verifier && a.worker === f.worker)));
  const edges = traffic(links, place).concat(workers.filter(m => m.units).map(m => line([cx, cy], place.get(m.id))),
    checks.filter(a => place.has(a.verifier) && place.has(a.worker)).map(a => line(place.get(a.verifier), place.get(a.worker), lied(a) ? '.audit.fault' : '.audit', 1 + 3 * (a.audits ?? 0) / most,
      a.audits ? `${plural(a.audits, 'audit')}${a.failed ? `, ${count(a.failed)} found a fault` : ''}` : 'a dispute')));
  return h('svg.map', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${plural(workers.length, 'worker')} and ${plural(verifiers.length, 'verifier')}${faults.length ? `; ${plural(new Set(faults.map(f => f.worker)).size, 'worker')} was found wrong` : ''}; ${moved(links)}` },
    edges, h('circle.fill-g', { cx, cy, r: 11 }), h('text', { x: cx, y: cy + 26, 'text-anchor': 'middle' }, 'consumer'),
    workers.concat(verifiers).map(m => {
      const [x, y] = place.get(m.id), r = m.role === 'worker' ? 7 + 13 * Math.sqrt(m.units / units) : 10, below = y >= cy - 1;
      return h('g', {}, h('circle.fill-' + (m.slashed_uzen ? 'bad' : m.role === 'worker' ? 'a' : 'c'), { cx: x, cy: y, r }), h('text', { x, y: below ? y + r + 14 : y - r - 18, 'text-anchor': 'middle' }, end(m.id)),
        h('text.soft', { x, y: below ? y + r + 28 : y - r - 5, 'text-anchor': 'middle' }, m.slashed_uzen ? 'slashed' : m.role === 'worker' ? plural(m.units, 'unit') : plural(m.audits.drawn, 'audit')));
    }));
}

// traffic draws a line between two who fetched from each other, the thicker the more went over it.
function traffic(links, place) {
  const pairs = [...Map.groupBy(links.filter(l => place.has(l.by) && place.has(l.of)), l => [l.by, l.of].sort().join()).values()];
  const sum = list => list.reduce((n, l) => n + l.bytes, 0), most = Math.max(...pairs.map(sum), 1);
  return pairs.map(list => line(place.get(list[0].by), place.get(list[0].of), '.traffic', 1 + 5 * sum(list) / most, list.map(said).join('; ')));
}

const end = id => id.slice(0, 9) + '…' + id.slice(-4);
const rate = l => l.bytes_per_second ? bytes(l.bytes_per_second) + '/s' : '–', away = l => l.round_trip_ms ? `${count(l.round_trip_ms)} ms` : '–';
const said = l => `${end(l.by)} fetched ${bytes(l.bytes)} from ${end(l.of)}${l.bytes_per_second ? ` at ${rate(l)}` : ''}${l.round_trip_ms ? `, ${away(l)} away` : ''}`;
const moved = links => links.length ? `${bytes(links.reduce((n, l) => n + l.bytes, 0))} fetched over ${plural(links.length, 'link')}, listed below` : 'who fetched from whom is not known';

// fetched lists who fetched from whom. why says where that is known from, or why nothing is.
export function fetched(links, why) {
  return card('Who fetched from whom', h('p.lead.small', {}, why), links.length > 0 && table('Links', [
    { head: 'Fetched by', cell: l => link('/workers/' + encodeURIComponent(l.by), short(l.by, 14, 6)) }, { head: 'From', cell: l => link('/workers/' + encodeURIComponent(l.of), short(l.of, 14, 6)) },
    { head: 'Bytes', number: true, cell: l => bytes(l.bytes) }, { head: 'Came at', number: true, cell: rate }, { head: 'Round trip', number: true, cell: away },
  ], links.toSorted((a, b) => b.bytes - a.bytes)));
}

// mesh draws who fetched from whom in a whole network: those in a circle who did or gave.
export function mesh(links) {
  const ids = [...new Set(links.flatMap(l => [l.by, l.of]))].sort(), width = 760, height = 340, cx = width / 2, cy = height / 2;
  const place = new Map(ids.map((id, i) => [id, [cx + 280 * Math.sin(i / ids.length * 2 * Math.PI), cy - 120 * Math.cos(i / ids.length * 2 * Math.PI)]]));
  return h('svg.map', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${plural(ids.length, 'participant')}; ${moved(links)}` }, traffic(links, place),
    ids.map(id => { const [x, y] = place.get(id); return h('g', {}, h('circle.fill-a', { cx: x, cy: y, r: 9 }), h('text', { x, y: y + (y < cy ? -16 : 26), 'text-anchor': 'middle' }, end(id))); }));
}

const line = ([x1, y1], [x2, y2], kind = '', width, says) => h('line.edge' + kind, { x1, y1, x2, y2, 'stroke-width': width }, says && h('title', { svg: true }, says));
