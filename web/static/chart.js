// Line charts in SVG: crosshair by pointer and by keyboard, smoothing, logarithmic axis, zoom by dragging, and each as CSV, SVG
// and PNG.

import { h, fill, significant, scaled, bytes, count, coinOf } from './dom.js';

export const colors = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'i'];

// Exponential moving average without the bias of its start; weight 0 leaves values as they are.
export function smooth(values, weight) {
  if (!weight) return values;
  let mean = 0, norm = 0;
  return values.map(v => {
    mean = mean * weight + v * (1 - weight);
    norm = norm * weight + (1 - weight);
    return mean / norm;
  });
}

// Ticks at 1, 2 or 5 times powers of ten, about n of them.
function ticks(low, high, n, least = 0) {
  const raw = Math.max((high - low) / n || 1, least), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw * 0.999);
  const list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) list.push(i * step);
  return { list, step };
}

function logTicks(low, high) {
  const list = [];
  for (let p = Math.floor(Math.log10(low)); 10 ** p <= high * 1.001; p++) {
    for (const m of high / low > 1000 ? [1] : [1, 2, 5]) if (m * 10 ** p >= low * 0.999 && m * 10 ** p <= high * 1.001) list.push(m * 10 ** p);
  }
  return list;
}

const written = {
  bytes: v => bytes(v), seconds: v => v < 60 ? significant(v, 3) + ' s' : v < 3600 ? `${Math.floor(v / 60)}:${String(Math.round(v % 60)).padStart(2, '0')} min` : `${significant(v / 3600, 3)} h`, 'tokens a second': v => scaled(v, ['', 'k', 'M', 'G']),
};
function write(v, unit, step) {
  if (written[unit]) return written[unit](v);
  if (Math.abs(v) >= 10000) return scaled(v, ['', 'k', 'M', 'G', 'T']);
  const digits = step ? Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) : 9;
  return digits > 8 ? significant(v) : v === 0 ? '0' : v.toFixed(digits); // the ticks of an axis have the same decimals
}

// Bounds of the values, a little apart from the frame; the odd spike of a loss in its first steps is not let rule.
function bounds(list, log, whole, zero) {
  let low = Infinity, high = -Infinity;
  for (const s of list) for (const v of s) { if (log && v <= 0) continue; if (v < low) low = v; if (v > high) high = v; }
  if (low === Infinity) return log ? [0.1, 1] : [0, 1];
  if (zero && !log) {
    if (low >= 0) return [0, high || 1];
    return [low, Math.max(0, high)];
  }
  if (low === high) return whole ? [Math.max(0, low - 1), high + 1] : log ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
  return [low, high];
}

// constant is the one value of all series, or undefined: what does not change is said, not drawn.
export function constant(series) {
  const first = series[0]?.y[0];
  return series.length === 1 && first !== undefined && series[0].y.every(v => v === first) ? first : undefined;
}
export const value = (v, unit) => written[unit] ? written[unit](v) : `${significant(v)}${unit && !unit.includes(' ') ? ' ' + unit : ''}`;

// chart(options) draws
//   title, unit, series: [{label, color, x: [], y: [], dash}], xLabel, xUnit, log, weight, height, name (of files),
//   zero: the vertical axis begins at 0, so that what looks like a fall is one,
//   onzoom(from, to): a part of the x axis was chosen, or the whole again with no arguments.
// It returns a figure; figure.update(options) draws it anew.
export function chart(options) {
  let o = options, hover = -1, width = 640, drag = null;
  const legend = h('div.legend', {});
  const svg = h('svg.chart', { tabindex: 0, role: 'img' });
  const tip = h('div.tip', { 'aria-hidden': 'true', hidden: true });
  const spoken = h('div.visually-hidden', { 'aria-live': 'polite' });
  const tools = saving(o.title, {
    name: () => o.name ?? o.title,
    rows: () => [['series', o.xLabel, 'value'], ...o.series.flatMap(s => s.x.map((x, i) => [s.label, x, s.y[i]]))],
    picture: () => picture(svg, { title: o.title + (o.unit ? `, ${o.unit}` : ''), width, height: scale.height, legend: scale.list }),
  });
  const figure = h('figure.figure', {},
    h('figcaption', {}, h('h2', {}, o.title), h('span.soft.small', {}, [o.note, o.unit === 'bytes' || o.unit === 'seconds' ? '' : o.unit].filter(Boolean).join(', ')), tools), legend,
    h('div.plot', {}, svg, tip), spoken);
  const frame = { left: 52, right: 12, top: 10, bottom: 26 };
  let scale;

  function lines() {
    return o.series.filter(s => s.x.length).map(s => ({ ...s, smooth: smooth(s.y, o.weight ?? 0) }));
  }

  function draw() {
    const height = o.height ?? 200, list = lines();
    svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    svg.setAttribute('height', height);
    const [low, high] = bounds(list.map(s => o.weight ? s.smooth : s.y), o.log, o.whole, o.zero);
    let x0 = Math.min(...list.map(s => s.x[0])), x1 = Math.max(...list.map(s => s.x.at(-1)));
    if (!list.length) { x0 = 0; x1 = 1; }
    if (x0 === x1) x1 = x0 + 1;
    const t = o.log ? { list: logTicks(low, high) } : ticks(low, high, height > 240 ? 6 : 4, o.whole ? 1 : 0);
    const y0 = o.log ? low : Math.min(low, t.list[0] ?? low), y1 = o.log ? high : Math.max(high, t.list.at(-1) ?? high);
    frame.left = 14 + 6.6 * Math.max(3, ...t.list.map(v => write(v, o.unit, t.step).length));
    const place = o.log ? v => (Math.log(Math.max(v, low)) - Math.log(y0)) / (Math.log(y1) - Math.log(y0) || 1) : v => (v - y0) / (y1 - y0 || 1);
    const pad = 0.04;
    scale = {
      x: v => frame.left + (v - x0) / (x1 - x0) * (width - frame.left - frame.right),
      y: v => height - frame.bottom - (place(v) * (1 - 2 * pad) + pad) * (height - frame.top - frame.bottom),
      back: px => x0 + (px - frame.left) / (width - frame.left - frame.right) * (x1 - x0), list, height,
    };
    const last = list.map(s => `${s.label} ${write(s.y.at(-1), o.unit)}`).join(', ');
    svg.setAttribute('aria-label', `${o.title}. ${list.length ? `Latest: ${last}. Arrow keys read the values.` : 'No values yet.'}`);
    const xt = ticks(x0, x1, Math.max(3, Math.floor(width / 110)), o.xUnit ? 0 : 1);
    const parts = [
      t.list.map(v => h('g', {}, h('line.grid', { x1: frame.left, x2: width - frame.right, y1: scale.y(v), y2: scale.y(v) }),
        h('text.tick', { x: frame.left - 8, y: scale.y(v), dy: '0.32em', 'text-anchor': 'end' }, write(v, o.unit, t.step)))),
      xt.list.map(v => h('text.tick', { x: scale.x(v), y: height - 8, 'text-anchor': 'middle' }, write(v, o.xUnit, xt.step))),
    ];
    for (const s of list) {
      if (o.weight) parts.push(h('path.curve.raw.stroke-' + s.color, { d: path(s.x, s.y) }));
      parts.push(h('path.curve.stroke-' + s.color + (s.dash ? '.dash' : ''), { d: path(s.x, s.smooth) }));
      if (s.x.length <= 48 && s.dots) parts.push(s.x.map((v, i) => h('circle.dot.stroke-' + s.color, { cx: scale.x(v), cy: scale.y(s.smooth[i]), r: 2.5 })));
    }
    parts.push(h('g.cross', {}));
    fill(svg, h('title', { svg: true }, o.title), parts);
    fill(legend, list.length > 1 || o.legend ? list.map(s => h('span', {}, h('i.key.back-' + s.color, {}), s.label)) : []);
    cross();
  }

  function path(x, y) {
    let d = '', pen = false;
    for (let i = 0; i < x.length; i++) {
      if (!Number.isFinite(y[i]) || o.log && y[i] <= 0) { pen = false; continue; }
      d += (pen ? 'L' : 'M') + scale.x(x[i]).toFixed(1) + ' ' + scale.y(y[i]).toFixed(1);
      pen = true;
    }
    return d;
  }

  function nearest(xs, v) {
    let low = 0, high = xs.length - 1;
    while (low < high) { const mid = (low + high) >> 1; if (xs[mid] < v) low = mid + 1; else high = mid; }
    return low > 0 && v - xs[low - 1] < xs[low] - v ? low - 1 : low;
  }

  // The crosshair stands at a point of the longest series; the others show their nearest.
  function cross() {
    const g = svg.querySelector('.cross'), list = scale.list;
    if (!g) return;
    const main = list.reduce((a, b) => !a || b.x.length > a.x.length ? b : a, null);
    if (hover < 0 || !main) { fill(g); tip.hidden = true; return; }
    const i = Math.min(hover, main.x.length - 1), at = main.x[i], px = scale.x(at);
    fill(g, h('line.hair', { x1: px, x2: px, y1: frame.top, y2: scale.height - frame.bottom }),
      list.map(s => { const k = nearest(s.x, at); return h('circle.at.fill-' + s.color, { cx: scale.x(s.x[k]), cy: scale.y(s.smooth[k]), r: 3.5 }); }));
    fill(tip, h('div.soft', {}, `${o.xLabel} ${write(at, o.xUnit) || count(at)}`),
      list.map(s => { const k = nearest(s.x, at); return h('div', {}, h('i.key.back-' + s.color, {}), `${s.label} `, h('b', {}, write(s.y[k], o.unit))); }));
    tip.hidden = false;
    const box = svg.getBoundingClientRect(), wide = tip.offsetWidth || 120, real = px / width * box.width;
    tip.style.left = Math.max(0, real + 14 + wide > box.width ? real - wide - 14 : real + 14) + 'px';
    return `${o.xLabel} ${write(at, o.xUnit)}: ` + list.map(s => `${s.label} ${write(s.y[nearest(s.x, at)], o.unit)}`).join(', ');
  }

  const pointer = e => { const box = svg.getBoundingClientRect(); return (e.clientX - box.left) / box.width * width; };
  svg.addEventListener('pointermove', e => {
    const main = scale?.list.reduce((a, b) => !a || b.x.length > a.x.length ? b : a, null);
    if (!main) return;
    const px = pointer(e);
    hover = nearest(main.x, scale.back(px));
    cross();
    if (drag !== null) {
      const g = svg.querySelector('.cross');
      g.append(h('rect.range', { x: Math.min(drag, px), width: Math.abs(px - drag), y: frame.top, height: scale.height - frame.top - frame.bottom }));
    }
  });
  svg.addEventListener('pointerleave', () => { hover = -1; drag = null; if (scale) cross(); });
  svg.addEventListener('pointerdown', e => { if (o.onzoom && e.button === 0) drag = pointer(e); });
  svg.addEventListener('pointerup', e => {
    const from = drag, to = pointer(e);
    drag = null;
    if (from !== null && Math.abs(to - from) > 12) o.onzoom(scale.back(Math.min(from, to)), scale.back(Math.max(from, to)));
  });
  svg.addEventListener('dblclick', () => o.onzoom?.());
  svg.addEventListener('keydown', e => {
    const main = scale?.list.reduce((a, b) => !a || b.x.length > a.x.length ? b : a, null);
    if (!main) return;
    const n = main.x.length, by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -Math.ceil(n / 10), PageDown: Math.ceil(n / 10), Home: -n, End: n }[e.key];
    if (by === undefined) { if (e.key === 'Escape') { hover = -1; cross(); o.onzoom?.(); } return; }
    e.preventDefault();
    hover = Math.max(0, Math.min(n - 1, (hover < 0 ? n - 1 : hover) + by));
    spoken.textContent = cross();
  });
  svg.addEventListener('blur', () => { hover = -1; if (scale) cross(); });

  new ResizeObserver(entries => {
    const w = Math.round(entries[0].contentRect.width);
    if (w > 0 && w !== width) { width = w; draw(); }
  }).observe(svg.parentNode ?? svg);
  figure.update = next => { o = { ...o, ...next }; draw(); };
  draw();
  return figure;
}

// Buttons that save a figure as CSV, SVG and PNG: name() of the file, rows() of its values, the first their heads, and picture().
export function saving(title, { name, rows, picture }) {
  function save(kind) {
    const file = name().toLowerCase().replace(/[^a-z0-9]+/g, '-');
    if (kind === 'CSV') return download(file + '.csv', new Blob([rows().map(r => r.map(field).join(',')).join('\n') + '\n'], { type: 'text/csv' }));
    const { text, width, height } = picture();
    if (kind === 'SVG') return download(file + '.svg', new Blob([text], { type: 'image/svg+xml' }));
    const image = new Image(), url = URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' }));
    image.onload = () => {
      const canvas = Object.assign(document.createElement('canvas'), { width: width * 2, height: height * 2 });
      canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
      URL.revokeObjectURL(url);
      canvas.toBlob(b => download(file + '.png', b), 'image/png');
    };
    image.src = url;
  }
  return h('div.tools', {}, ['CSV', 'SVG', 'PNG'].map(kind => h('button', { type: 'button', 'aria-label': `${kind}: ${title} as ${kind}`, onclick: () => save(kind) }, kind)));
}

// A drawing by itself, below its title and a legend of {label, color}: the styles that it has here are written into it.
export function picture(svg, { title, width, height, legend = [] }) {
  const copy = svg.cloneNode(true), from = svg.querySelectorAll('*'), to = copy.querySelectorAll('*'), head = 34;
  from.forEach((e, i) => {
    const style = getComputedStyle(e);
    for (const p of ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font-size', 'font-family']) to[i].setAttribute(p, style.getPropertyValue(p));
  });
  copy.querySelector('.cross')?.remove();
  const style = getComputedStyle(document.body);
  const out = h('svg', { xmlns: 'http://www.w3.org/2000/svg', viewBox: `0 ${-head} ${width} ${height + head}`, width, height: height + head },
    h('rect', { x: 0, y: -head, width, height: height + head, fill: style.getPropertyValue('--card') }),
    h('text', { x: 12, y: -12, 'font-size': 14, 'font-family': 'sans-serif', 'font-weight': 600, fill: style.color }, title),
    legend.length > 1 && legend.map((s, i) => h('text', { x: width - 12 - 120 * (legend.length - 1 - i), y: -12, 'text-anchor': 'end', 'font-size': 12, 'font-family': 'sans-serif',
      fill: style.getPropertyValue('--' + s.color) }, s.label)),
    ...copy.childNodes);
  return { text: new XMLSerializer().serializeToString(out), width, height: height + head };
}

const field = v => /[",\n]/.test(v) ? `"${String(v).replaceAll('"', '""')}"` : v;

export function download(name, blob) {
  const a = h('a', { href: URL.createObjectURL(blob), download: name });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(a.href), 60000); // a browser that is busy has begun to save it by then
}

// Where an inner step of metrics lies on another axis: by the table of rounds, and between two of its entries in proportion.
export function mapping(data, by) {
  const { axis } = data;
  const to = { tokens: axis.tokens, time: axis.seconds, cost: axis.uzen.map(v => v / 10 ** coinOf(data).digits) }[by];
  if (!to || axis.step.length < 2) return v => v;
  return v => {
    let low = 0, high = axis.step.length - 1;
    while (low < high - 1) { const mid = (low + high) >> 1; if (axis.step[mid] <= v) low = mid; else high = mid; }
    const share = (v - axis.step[low]) / (axis.step[high] - axis.step[low] || 1);
    return to[low] + share * (to[high] - to[low]);
  };
}
export const axes = { step: ['inner step', ''], tokens: ['tokens', ''], time: ['time', 'seconds'], cost: ['cost', ''] };
// The name and the unit of a horizontal axis, for the metrics of some runs: a cost is in their coins.
export const axisOf = (by, list) => by === 'cost' ? ['cost in ' + [...new Set(list.map(m => coinOf(m).name))].join(' or '), ''] : axes[by];
