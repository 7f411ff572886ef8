// What starling sim has played: sweeps, and what each setting costs and gains.

import { h, fill, count, loss, zen, zens, bytes, duration, table, empty, link, card, chip, plural } from '../dom.js';
import { all } from '../api.js';
import { saving, picture } from '../chart.js';

export async function simulator({ root, signal }) {
  const jobs = (await all('/v1/jobs?kind=simulation', 'jobs', signal));
  if (!jobs.length) return fill(root, h('h1', {}, 'Simulator'), h('section.card', {}, empty('No simulation is here. Play a job under virtual time, several times over:', 'starling sim job.yaml --sweep strategy.sync_steps=5,10,20 --link bad --dir out/sweep')));
  const groups = Map.groupBy(jobs.sort((a, b) => a.id.localeCompare(b.id)), j => j.id.includes(':') ? j.id.slice(0, j.id.lastIndexOf(':')) : j.id);
  fill(root, h('div.head', {}, h('h1', {}, 'Simulator')), h('p.lead', {}, 'Real training under virtual time: the losses are computed, the seconds are the network’s that was described.'),
    [...groups].map(([name, list]) => card([name, ' ', h('span.soft.small', {}, plural(list.length, 'variant'))],
      list.length > 1 && h('div.grid2', {}, scatter(name, list, 'Loss against time', 'seconds', j => j.seconds, duration), scatter(name, list, 'Loss against bytes sent', 'bytes', j => j.bytes_up, bytes)),
      table('Variants of ' + name, [
        { head: 'Variant', wide: true, plain: true, cell: j => link('/jobs/' + encodeURIComponent(j.id), j.id) }, { head: 'State', cell: j => chip(j.state) }, { head: 'Rounds', number: true, cell: j => count(j.round) }, { head: 'Eval loss', number: true, cell: j => loss(j.eval_loss) }, { head: 'Bits a byte', number: true, cell: j => loss(j.bits_per_byte) },
        { head: 'Time', number: true, cell: j => duration(j.seconds) }, { head: 'Utilisation', number: true, cell: j => j.utilisation ? (100 * j.utilisation).toFixed(1) + ' %' : '–' }, { head: 'Sent', number: true, cell: j => bytes(j.bytes_up) }, { head: 'Received', number: true, cell: j => bytes(j.bytes_down) },
        { head: 'Cost, ZEN', number: true, cell: j => zens(list.map(j => j.paid_uzen + j.fee_uzen))(j.paid_uzen + j.fee_uzen) }, { head: 'Slashed, ZEN', number: true, cell: j => zen(j.slashed_uzen) }, { head: 'Disputes', number: true, cell: j => count(j.disputes) },
      ], list), list.length > 1 && h('p', {}, link('/compare?runs=' + list.slice(0, 8).map(j => encodeURIComponent(j.id)).join(','), 'Compare their curves')))));
}

// The variants as points, those that no other beats in both marked and joined: the Pareto front.
function scatter(name, list, title, unit, of, write) {
  const points = list.filter(j => j.eval_loss !== undefined).map(j => ({ id: j.id, x: of(j), y: j.eval_loss }));
  if (points.length < 2) return null;
  const front = points.filter(p => !points.some(q => q !== p && q.x <= p.x && q.y <= p.y && (q.x < p.x || q.y < p.y))).sort((a, b) => a.x - b.x);
  const width = 460, height = 210, pad = { l: 58, r: 46, t: 16, b: 34 };
  const span = (v, from, to) => { const low = Math.min(...v), high = Math.max(...v); return x => from + (high === low ? 0.5 : (x - low) / (high - low)) * (to - from); };
  const x = span(points.map(p => p.x), pad.l + 14, width - pad.r), y = span(points.map(p => p.y), height - pad.b - 12, pad.t + 6);
  const ends = (v, f) => [Math.min(...v), Math.max(...v)].map(f);
  const [x0, x1] = ends(points.map(p => p.x), write), [y0, y1] = ends(points.map(p => p.y), loss);
  const svg = h('svg.map', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${title}: ` + points.map(p => `${p.id} ${loss(p.y)} at ${write(p.x)}`).join(', ') },
    h('line.grid', { x1: pad.l, x2: pad.l, y1: pad.t, y2: height - pad.b }), h('line.grid', { x1: pad.l, x2: width - 10, y1: height - pad.b, y2: height - pad.b }),
    h('text.tick', { x: pad.l - 8, y: y(Math.min(...points.map(p => p.y))), dy: '.32em', 'text-anchor': 'end' }, y0), h('text.tick', { x: pad.l - 8, y: y(Math.max(...points.map(p => p.y))), dy: '.32em', 'text-anchor': 'end' }, y1),
    h('text.tick', { x: x(Math.min(...points.map(p => p.x))), y: height - 12, 'text-anchor': 'middle' }, x0), h('text.tick', { x: x(Math.max(...points.map(p => p.x))), y: height - 12, 'text-anchor': 'middle' }, x1),
    h('path.curve.stroke-a.dash', { d: front.map((p, i) => (i ? 'L' : 'M') + x(p.x) + ' ' + y(p.y)).join('') }),
    points.map(p => h('g', {}, h('circle.fill-' + (front.includes(p) ? 'a' : 'f'), { cx: x(p.x), cy: y(p.y), r: 5 }), h('text.soft', { x: x(p.x) + 9, y: y(p.y), dy: '.32em' }, p.id.split(':').at(-1)))));
  const tools = saving(title, {
    name: () => `${name} ${title}`, rows: () => [['variant', unit, 'eval_loss', 'unbeaten'], ...points.map(p => [p.id, p.x, p.y, front.includes(p)])],
    picture: () => picture(svg, { title, width, height }),
  });
  return h('figure.figure', {}, h('figcaption', {}, h('h3', {}, title), tools), svg);
}
