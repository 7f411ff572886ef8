// Who took part in a run, who looked at whose work, and who fetched how much from whom.

import { h, count, bytes, table, plural, card, account, person } from '../dom.js';

// The members of a run: the consumer in the middle, workers around it, verifiers outside. A line is drawn where something happened: to
// who worked for the consumer, and between who computed again and whose work it was.
export function map(members, audited, disputes) {
  const workers = members.filter(m => m.role === 'worker'), verifiers = members.filter(m => m.role === 'verifier');
  const width = 760, height = 380, cx = width / 2, cy = height / 2, units = Math.max(...workers.map(m => m.units), 1);
  const at = (i, n, rx, ry, turn) => { const a = (i + turn) / n * 2 * Math.PI - Math.PI / 2; return [cx + rx * Math.cos(a), cy + ry * Math.sin(a)]; };
  const place = new Map();
  workers.forEach((m, i) => place.set(m.id, at(i, workers.length, 165, 104, 0)));
  verifiers.forEach((m, i) => place.set(m.id, at(i, verifiers.length, 300, 130, 0.62)));
  members.filter(m => m.role === 'consumer').forEach(m => place.set(m.id, [cx, cy]));
  const faults = disputes.filter(d => d.verdict === 'worker_lied').map(d => ({ verifier: d.challenger, worker: d.worker }));
  const lied = a => faults.some(f => f.verifier === a.verifier && f.worker === a.worker), most = Math.max(...audited.map(a => a.audits), 1);
  const checks = audited.concat(faults.filter(f => !audited.some(a => a.verifier === f.verifier && a.worker === f.worker)));
  const edges = workers.filter(m => m.units).map(m => line([cx, cy], place.get(m.id))).concat(
    checks.filter(a => place.has(a.verifier) && place.has(a.worker)).map(a => line(place.get(a.verifier), place.get(a.worker), lied(a) ? '.audit.fault' : '.audit', 1 + 3 * (a.audits ?? 0) / most,
      a.audits ? `${plural(a.audits, 'audit')}${a.failed ? `, ${count(a.failed)} found a fault` : ''}` : 'a dispute')));
  return h('svg.map', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${plural(workers.length, 'worker')} and ${plural(verifiers.length, 'verifier')}${faults.length ? `; ${plural(new Set(faults.map(f => f.worker)).size, 'worker')} was found wrong` : ''}` },
    edges, h('circle.fill-g', { cx, cy, r: 11 }), h('text', { x: cx, y: cy + 26, 'text-anchor': 'middle' }, 'consumer'),
    workers.concat(verifiers).map(m => {
      const [x, y] = place.get(m.id), r = m.role === 'worker' ? 7 + 13 * Math.sqrt(m.units / units) : 10, below = y >= cy - 1;
      const side = Math.min(Math.max(x, 76), width - 76); // a label stays on the map
      return h('g', {}, h('circle.fill-' + (m.slashed_uzen ? 'bad' : m.role === 'worker' ? 'a' : 'c'), { cx: x, cy: y, r }), h('text', { x: side, y: below ? y + r + 14 : y - r - 18, 'text-anchor': 'middle' }, account(m.id)),
        h('text.soft', { x: side, y: below ? y + r + 28 : y - r - 5, 'text-anchor': 'middle' }, m.slashed_uzen ? 'slashed' : m.role === 'worker' ? plural(m.units, 'unit') : plural(m.audits.drawn, 'audit')));
    }));
}

const line = ([x1, y1], [x2, y2], kind = '', width, says) => h('line.edge' + kind, { x1, y1, x2, y2, 'stroke-width': width }, says && h('title', { svg: true }, says));

const rate = l => l.bytes_per_second ? bytes(l.bytes_per_second) + '/s' : '–', away = l => l.round_trip_ms ? `${count(l.round_trip_ms)} ms` : '–';
const said = l => `${account(l.by)} fetched ${bytes(l.bytes)} from ${account(l.of)}${l.bytes_per_second ? ` at ${rate(l)}` : ''}${l.round_trip_ms ? `, ${away(l)} away` : ''}`;

// More than most rows are no grid that can be read; of more than few links the table is closed.
const most = 64, few = 8;

// heat shows who fetched how much from whom: a row for who fetched, a column for who gave, the darker the more. why says where that is
// known from, or why nothing is.
export function heat(links, why) {
  if (!links.length) return card('Who fetched from whom', h('p.lead.small', {}, why));
  const ids = [...new Set(links.flatMap(l => [l.by, l.of]))].sort(), sorted = links.toSorted((a, b) => b.bytes - a.bytes);
  const rows = table('Links', [
    { head: 'Fetched by', cell: l => person(l.by) }, { head: 'From', cell: l => person(l.of) },
    { head: 'Bytes', number: true, cell: l => bytes(l.bytes) }, { head: 'Came at', number: true, cell: rate }, { head: 'Round trip', number: true, cell: away },
  ], sorted.slice(0, 500));
  return card('Who fetched from whom', h('p.lead.small', {}, why, ids.length <= most && ' A row fetched, a column gave; point at a field to read it.'), ids.length <= most && grid(ids, links),
    h('details', { open: links.length <= few }, h('summary', {}, links.length > 500 ? 'The 500 largest as a table' : 'As a table'), rows));
}

function grid(ids, links) {
  const cell = Math.max(14, Math.min(44, Math.floor(560 / ids.length))), left = 176, top = 26, width = left + cell * ids.length + 4, height = top + cell * ids.length + 4;
  const largest = Math.max(...links.map(l => l.bytes), 1), at = new Map(ids.map((id, i) => [id, i])), total = links.reduce((n, l) => n + l.bytes, 0);
  return h('svg.map.heat', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': `${plural(ids.length, 'participant')}; ${bytes(total)} fetched over ${plural(links.length, 'link')}` },
    ids.map((id, i) => [
      h('text', { x: left - 8, y: top + (i + 0.5) * cell, dy: '.32em', 'text-anchor': 'end' }, `${account(id)}  ${i + 1}`),
      h('text.soft', { x: left + (i + 0.5) * cell, y: top - 9, 'text-anchor': 'middle' }, ids.length <= 32 || i % 4 === 3 ? String(i + 1) : ''),
      h('rect.self', { x: left + i * cell, y: top + i * cell, width: cell - 2, height: cell - 2, rx: 3 }),
    ]),
    links.filter(l => l.by !== l.of).map(l => h('rect.fill-a', { x: left + at.get(l.of) * cell, y: top + at.get(l.by) * cell, width: cell - 2, height: cell - 2, rx: 3, 'fill-opacity': (0.1 + 0.9 * Math.sqrt(l.bytes / largest)).toFixed(3) },
      h('title', { svg: true }, said(l)))));
}
