// The shell: addresses to pages, the theme, the keys.

import { h, fill, empty, words } from './dom.js';
import { get, Failure, onConnection, setToken } from './api.js';
import * as jobs from './pages/jobs.js';
import * as job from './pages/job.js';
import * as compare from './pages/compare.js';
import * as network from './pages/network.js';
import * as people from './pages/people.js';
import * as simulator from './pages/simulator.js';
import * as models from './pages/models.js';
import * as explorer from './pages/explorer.js';
import * as health from './pages/health.js';

// Each page draws into a root until its signal ends: page({root, params, query, signal, go}).
const pages = [
  { path: /^\/$/, page: jobs.start, name: 'Jobs' },
  { path: /^\/jobs$/, page: jobs.list, nav: ['/jobs', 'Jobs', 'j'] },
  { path: /^\/jobs\/([^/]+)(?:\/([a-z]+))?$/, page: job.detail, name: 'Job', under: '/jobs' },
  { path: /^\/compare$/, page: compare.compare, nav: ['/compare', 'Compare', 'c'] },
  { path: /^\/models$/, page: models.models, nav: ['/models', 'Models', 'm'] },
  { path: /^\/models\/([^/]+)$/, page: models.model, name: 'Model', under: '/models' },
  { path: /^\/simulator$/, page: simulator.simulator, nav: ['/simulator', 'Simulator', 's'] },
  { path: /^\/network$/, page: network.network, nav: ['/network', 'Network', 'n'], gap: true },
  { path: /^\/workers$/, page: people.workers, nav: ['/workers', 'Workers', 'w'] },
  { path: /^\/workers\/([a-z0-9_]+)$/, page: people.worker, name: 'Worker', under: '/workers' },
  { path: /^\/validators$/, page: people.validators, nav: ['/validators', 'Validators', 'v'] },
  { path: /^\/explorer(?:\/(tx|account)\/([A-Za-z0-9_]+))?$/, page: explorer.explorer, nav: ['/explorer', 'Explorer', 'e'] },
  { path: /^\/health$/, page: health.health, nav: ['/health', 'Health', 'h'] },
];

const main = document.getElementById('main'), menu = document.getElementById('menu'), side = document.querySelector('.side');
let leave = new AbortController();

export function go(address, replace) {
  history[replace ? 'replaceState' : 'pushState'](null, '', address);
  if (!replace) show();
}

async function show(keep) {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave, path = decodeURI(location.pathname);
  const found = pages.find(p => p.path.test(path));
  const here = found?.under ?? path;
  for (const a of document.querySelectorAll('#nav a')) {
    if (a.getAttribute('href') === here || path === '/' && a.getAttribute('href') === '/jobs') a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  if (!keep) { scrollTo(0, 0); opened(false); }
  const root = h('div', {});
  let slow;
  const name = found?.nav?.[1] ?? found?.name ?? 'Not found';
  document.title = name + ' · Starling';
  try {
    if (!found) throw new Failure({ status: 404, code: 'NO_SUCH_PAGE', detail: 'There is no such page.', fix: 'The pages are on the left.' });
    const params = (found.path.exec(location.pathname) ?? []).slice(1).map(p => p && decodeURIComponent(p));
    const draw = found.page({ root, params, query: new URLSearchParams(location.search), signal, go, again: () => show(true) });
    slow = setTimeout(() => { if (!signal.aborted && !root.isConnected) fill(main, h('p.soft', { role: 'status' }, 'Loading…')); }, 250);
    await draw;
    if (signal.aborted) return;
    fill(main, root);
  } catch (e) {
    if (signal.aborted || e.name === 'AbortError') return;
    fill(main, problem(e, signal));
  } finally {
    clearTimeout(slow);
  }
  main.dataset.ready = location.pathname + location.search;
  performance.mark('shown');
}

// A problem, with what to do: the way to a token where one is needed, and another try where the server is gone.
export function problem(e, signal) {
  const p = e.problem ?? { code: 'PAGE_FAILED', detail: e.message };
  if (!e.problem) console.error(e);
  const parts = [h('h1', {}, p.status === 404 ? 'Not here' : p.status === 401 ? 'A token is needed' : 'That did not work'), h('p', {}, p.detail), p.fix && h('p.soft', {}, p.fix),
    h('p.soft.small', {}, h('code', {}, p.code), p.request_id && [' · request ', h('code', {}, p.request_id)])];
  if (p.status === 401) {
    const input = h('input', { type: 'password', 'aria-label': 'Token', autocomplete: 'off', size: 40 });
    parts.push(h('form.bar', { onsubmit: ev => { ev.preventDefault(); setToken(input.value.trim()); show(); } }, input, h('button.act', {}, 'Use it')));
  }
  if (p.status === 0 && signal) {
    const t = setInterval(async () => { try { await get('/v1/version', signal); clearInterval(t); show(true); } catch { /* not yet */ } }, 2000);
    signal.addEventListener('abort', () => clearInterval(t));
  }
  return h('section.card.problem', { role: 'alert' }, parts);
}

document.addEventListener('click', e => {
  const a = e.target.closest('a[href]');
  if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || a.target || a.download || a.origin !== location.origin || a.hash || a.pathname.startsWith('/v1')) return;
  e.preventDefault();
  if (a.href !== location.href) go(a.pathname + a.search);
  main.focus({ preventScroll: true });
});
addEventListener('popstate', () => show());

// Theme: that of the system, until one is chosen.
const dark = matchMedia('(prefers-color-scheme: dark)');
function theme() {
  const chosen = localStorage.getItem('starling-theme'), now = chosen ?? (dark.matches ? 'dark' : 'light');
  document.documentElement.dataset.theme = now;
  document.getElementById('theme').textContent = now === 'dark' ? 'Light theme' : 'Dark theme';
}
document.getElementById('theme').addEventListener('click', () => {
  localStorage.setItem('starling-theme', document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
  theme();
});
dark.addEventListener('change', theme);
theme();

// Keys: g and a letter goes to a page.
const help = document.getElementById('help');
const shortcuts = pages.filter(p => p.nav).map(p => ['g ' + p.nav[2], p.nav[1]]).concat([['t', 'Other theme'], ['[ and ]', 'Tab of a job to the left, to the right'], ['/', 'Search'], ['← → on a chart', 'Read its values'], ['drag on a chart', 'Look closer; double click for the whole']]);
fill(help, h('h2', { id: 'help-title' }, 'Keys'), h('dl.facts', {}, shortcuts.map(([k, text]) => [h('dt', {}, h('kbd', {}, k)), h('dd', {}, text)])),
  h('form', { method: 'dialog' }, h('button.act', {}, 'Close')));
document.getElementById('keys').addEventListener('click', () => help.showModal());
help.querySelector('form').addEventListener('submit', e => { e.preventDefault(); help.close(); });
// On a narrow screen the pages are behind a button.
function opened(open) {
  side.classList.toggle('open', open);
  menu.setAttribute('aria-expanded', String(open));
}
menu.addEventListener('click', () => opened(!side.classList.contains('open')));

let prefix = 0;
document.addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || help.open) return;
  if (e.key === '?') help.showModal();
  else if (e.key === 't') document.getElementById('theme').click();
  else if (e.key === '/') { const s = document.querySelector('input[type="search"]'); if (s) { e.preventDefault(); s.focus(); } }
  else if (e.key === '[' || e.key === ']') {
    const tabs = [...document.querySelectorAll('.tabs a')], at = tabs.findIndex(a => a.hasAttribute('aria-current'));
    tabs[at + (e.key === ']' ? 1 : -1)]?.click();
  } else if (e.key === 'g') prefix = Date.now();
  else if (Date.now() - prefix < 1200) {
    const p = pages.find(p => p.nav?.[2] === e.key);
    prefix = 0;
    if (p) go(p.nav[0]);
  }
});

const names = { idle: '', live: 'Live', connecting: 'Connecting…', reconnecting: 'Reconnecting…', refused: '' };
onConnection(state => {
  const e = document.getElementById('live');
  e.className = 'live live-' + state;
  fill(e, names[state] ? [h('i', {}), names[state]] : []);
});

fill(document.getElementById('nav'), pages.filter(p => p.nav).map(p => h('li' + (p.gap ? '.gap' : ''), {}, h('a', { href: p.nav[0], 'aria-keyshortcuts': 'g ' + p.nav[2] }, p.nav[1]))));
get('/v1/version').then(v => { document.getElementById('version').textContent = 'starling ' + v.version; }).catch(() => {});
show();
