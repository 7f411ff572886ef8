// Elements, and how values are written. Text of others only ever becomes text: nothing here parses markup.

const svgNames = new Set(['svg', 'path', 'g', 'line', 'circle', 'rect', 'text', 'title', 'desc', 'polyline', 'clipPath', 'defs']);

// h('a.small.soft', {href}, children...) makes an element. Event listeners are attributes that begin with on.
export function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split('.');
  const e = svgNames.has(name) && (name !== 'title' || attributes?.svg)
    ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  if (classes.length) e.setAttribute('class', classes.join(' '));
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false || key === 'svg') continue;
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (key === 'value' || key === 'checked') e[key] = value;
    else e.setAttribute(key, value === true ? '' : value);
  }
  e.append(...children.flat(3).filter(c => c !== undefined && c !== null && c !== false).map(c => c instanceof Node ? c : String(c)));
  return e;
}

export const fill = (e, ...children) => e.replaceChildren(...children.flat(3).filter(c => c !== undefined && c !== null && c !== false));

// Numbers, as a person reads them.
export function count(n) {
  return n === undefined || n === null ? '–' : Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');
}
export function scaled(x, units) {
  let i = 0;
  while (Math.abs(x) >= 999.5 && i < units.length - 1) { x /= 1000; i++; }
  const digits = i === 0 ? 0 : Math.abs(x) < 9.995 ? 2 : Math.abs(x) < 99.95 ? 1 : 0;
  return (x.toFixed(digits) + ' ' + units[i]).trim();
}
export const bytes = n => scaled(n ?? 0, ['B', 'kB', 'MB', 'GB', 'TB', 'PB']);
export const many = n => scaled(n ?? 0, ['', 'k', 'M', 'G', 'T']);
export function loss(x) { return x === undefined || x === null ? '–' : x.toFixed(3); }
// perByte is the eval loss in bits a byte of text, which compares models whatever their tokens are; '' where it is not known.
export function perByte(x) { return x.bits_per_byte === undefined ? '' : `${x.bits_per_byte.toFixed(3)} bits a byte, `; }
export function significant(x, n = 4) {
  if (!Number.isFinite(x)) return '–';
  const a = Math.abs(x);
  if (a !== 0 && (a < 1e-5 || a >= 1e7)) return x.toExponential(2).replace('e+', 'e');
  return String(Number(x.toPrecision(n)));
}
// Amounts come in uzen and are read in ZEN. As many decimals as the smallest of a column needs, so that they are aligned.
const decimals = uzen => uzen >= 1e6 || !uzen ? 2 : uzen >= 1e4 ? 4 : 6;
export const zen = (uzen, digits = decimals(uzen ?? 0)) => ((uzen ?? 0) / 1e6).toFixed(digits);
export function zens(list) {
  const digits = Math.max(2, ...list.map(x => decimals(x ?? 0)));
  return uzen => zen(uzen, digits);
}
// An amount in the coin of a value that has one, with the name of the coin; without a coin it is ZEN.
export const coinOf = v => v.coin ? { name: v.coin.symbol.toUpperCase(), digits: Math.min(9, v.coin.decimals) } : { name: 'ZEN', digits: 6 };
export function money(amount, v) {
  if (!v.coin) return `${zen(amount)} ZEN`;
  const c = coinOf(v);
  return `${((amount ?? 0) / 10 ** c.digits).toFixed(Math.min(c.digits, 6))} ${c.name}`;
}
// Writes amounts of a column, each with the coin of its value: those in ZEN alone as numbers of equally many decimals.
export function column(list, amount) {
  const write = zens(list.filter(v => !v.coin).map(amount).filter(Boolean));
  return v => v.coin ? money(amount(v), v) : list.some(w => w.coin) ? write(amount(v)) + ' ZEN' : write(amount(v));
}
// Sums of amounts in each coin, ZEN first.
export function sums(list, amount) {
  const by = Map.groupBy(list.filter(v => amount(v)), v => v.coin?.denom ?? '');
  return [...by].sort(([a], [b]) => a < b ? -1 : 1).map(([, of]) => money(of.reduce((n, v) => n + amount(v), 0), of[0])).join(', ') || '0.00 ZEN';
}
export function duration(seconds) {
  const s = Math.round(seconds);
  if (!Number.isFinite(s)) return '–';
  if (s >= 86400) return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
  if (s >= 3600) return `${Math.floor(s / 3600)} h ${String(Math.floor(s / 60) % 60).padStart(2, '0')} min`;
  if (s >= 600) return `${Math.round(s / 60)} min`;
  if (s >= 60) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return seconds < 10 && seconds > 0 ? `${seconds.toFixed(1)} s` : `${s} s`;
}
export function ago(time) {
  if (!time) return '–';
  const s = (Date.now() - new Date(time)) / 1000;
  if (s < 5) return 'just now';
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ago`;
  return new Date(time).toISOString().slice(0, 10);
}
export const plural = (n, word) => `${count(n)} ${word}${n === 1 ? '' : 's'}`;

// How audits ended: the parts add up to those that were drawn.
export function audits(a) {
  if (!a.drawn) return 'none drawn';
  const parts = [[a.passed, 'same bits'], [a.failed, a.failed === 1 ? 'fault found' : 'faults found'], [a.moot, 'moot'], [a.missed, 'not answered']];
  return parts.filter(([n], i) => n > 0 || i === 0).map(([n, text]) => `${count(n)} ${text}`).join(', ');
}
export const words = s => (s ?? '').replaceAll('_', ' ');

// word is a text as one word of a shell.
export const word = text => /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

// local is a folder that no library takes for a name on a hub.
export const local = folder => /^[./]/.test(folder) ? folder : './' + folder;

// An account as it is written everywhere: in tables, on maps and at the side of a grid.
export const account = id => id.length > 19 ? id.slice(0, 12) + '…' + id.slice(-6) : id;
export const person = id => link('/workers/' + encodeURIComponent(id), h('code', { title: id }, account(id)));

// A digest: both ends, the whole as its title, and copied with a click.
export function short(text, head = 10, tail = 6) {
  if (!text) return h('span.soft', {}, '–');
  const cut = text.length > head + tail + 1 ? text.slice(0, head) + '…' + text.slice(-tail) : text;
  return h('code', { title: text }, cut);
}
export function copyable(text, head, tail) {
  if (!text) return h('span.soft', {}, '–');
  const b = h('button.copy', { type: 'button', title: text + ' (click to copy)', onclick: async () => {
    try { await navigator.clipboard.writeText(text); b.classList.add('copied'); setTimeout(() => b.classList.remove('copied'), 900); } catch { /* not allowed here */ }
  } }, short(text, head, tail).textContent);
  return b;
}

const marks = { done: 'good', running: 'busy', queued: 'wait', stopped: 'wait', halted: 'bad', failed: 'bad' };
export function chip(state, kind) { return h('span.chip.' + (kind ?? marks[state] ?? 'wait'), {}, words(state)); }

// table(label, columns, rows) with columns of {head, label, cell, number, wide, plain, minor}. On a narrow screen a row becomes a block, each of
// its cells below the head of its column, or the label where the head is more than a text; plain cells stand without, and minor ones are left out. The roles say that it still is a table.
export function table(label, columns, rows, key) {
  return h('div.scroll', { tabindex: 0, role: 'group', 'aria-label': label }, h('table', { role: 'table' },
    h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, columns.map(c => h('th' + (c.number ? '.number' : ''), { scope: 'col', role: 'columnheader' }, c.head)))),
    h('tbody', { role: 'rowgroup' }, rows.map(r => h('tr', { role: 'row', 'data-key': key?.(r) }, columns.map(c => {
      const kind = (c.number ? '.number' : '') + (c.wide ? '.wide' : '') + (c.plain ? '.plain' : '') + (c.minor ? '.minor' : '');
      return h('td' + kind, { role: 'cell', 'data-label': c.plain ? undefined : c.label ?? (typeof c.head === 'string' ? c.head : undefined) }, c.cell(r));
    }))))));
}

export function tile(name, value, more, tone) {
  return h('div.tile', {}, h('div.name', {}, name), h('div.value', {}, value), more !== undefined && more !== '' && h('div.more' + (tone ? '.' + tone : ''), {}, more));
}

// facts are named values, below each other.
export const facts = pairs => h('dl.facts', {}, pairs.filter(Boolean).map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));

// segments are buttons of which one is pressed: [value, name] each.
export function segments(label, choices, chosen, pick) {
  const all = h('div.segments', { role: 'group', 'aria-label': label }, choices.map(([value, name]) => h('button', { type: 'button', 'aria-pressed': String(value === chosen), onclick: e => {
    for (const b of all.children) b.setAttribute('aria-pressed', String(b === e.currentTarget));
    pick(value);
  } }, name)));
  return all;
}

export function card(title, ...children) {
  return h('section.card', {}, title && h('h2', {}, title), ...children);
}

export function empty(text, command) {
  return h('div.empty', {}, h('p', {}, text), command && h('p', {}, h('code.command', {}, command)));
}

export function meter(share, label, tone = 'a') {
  const w = Math.max(0, Math.min(1, share || 0)) * 100;
  return h('svg.meter', { viewBox: '0 0 100 4', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    h('rect.track', { width: 100, height: 4 }), h('rect.fill-' + tone, { width: w.toFixed(2), height: 4 }));
}

export function spark(values, label) {
  if (!values || values.length < 2) return h('span.soft', {}, '–');
  const low = Math.min(...values), high = Math.max(...values), span = high - low || 1;
  const points = values.map((v, i) => `${(i / (values.length - 1) * 96 + 2).toFixed(1)},${(22 - (v - low) / span * 20).toFixed(1)}`).join(' ');
  return h('svg.spark', { viewBox: '0 0 100 24', role: 'img', 'aria-label': label ?? 'loss' }, h('polyline', { points }));
}

export function link(href, ...children) { return h('a', { href }, ...children); }
