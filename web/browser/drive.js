// Drives the dashboard in Chromium, and says what it saw as one line of JSON on standard output:
//   node drive.js '{"chromium": PATH, "pages": [{"name", "url", "saves", "plain"}], "themes": ["light"], "widths": [1280], "shots": DIR, "whole": true, "files": DIR}'
// Of every page, theme and width: errors of the console, requests that leave the server, what axe-core finds, whether anything has to be
// scrolled sideways on a phone, the time of the first paint, and, if it saves, what came of pressing the buttons of its figures, once.
// A plain page is a file without the dashboard's script. With "reconnect": {"url", "shows", "rounds"} it opens a page, says "now", waits for a line on standard input, and then
// for the page to be live again and to show a text, and as many rounds. With "keys": {"url", "next", "goes"} it uses a page by the keyboard alone.
// It waits for what is to be seen, never for a time; patience only ends what would never come. It ends, and the browser with it, when its
// standard input does: whoever asked is gone.

import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const task = JSON.parse(process.argv[2]), patience = 60000, inThemes = task.themes ?? ['light', 'dark'], inWidths = task.widths ?? [1280, 400];
const browser = await chromium.launch({ executablePath: task.chromium, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
const seen = [];

async function open(context, url) {
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  await page.goto(url, { waitUntil: 'domcontentloaded' });
  return page;
}

const ready = page => page.waitForFunction(() => document.getElementById('main')?.dataset.ready);

// download presses a button until the browser begins to save a file of that suffix. A browser on a busy machine now and then
// drops a download, or the key itself, without a word: the button is pressed again, as a person would.
async function download(page, button, suffix) {
  for (let left = patience; ; left -= 15000) {
    const [file] = await Promise.all([
      page.waitForEvent('download', { predicate: d => d.suggestedFilename().endsWith(suffix), timeout: Math.min(left, 15000) }).catch(e => e),
      button.press('Enter'),
    ]);
    if (!(file instanceof Error)) return file;
    if (left <= 15000) throw new Error(`${await button.getAttribute('aria-label')}: ${file.message}`);
  }
}

// save presses the buttons that save the figures of a page, keeps the files, and says their names and how many points are drawn.
async function save(page) {
  const saved = [];
  for (const figure of await page.locator('figure.figure').all()) {
    const one = { title: await figure.locator('h2, h3').innerText(), names: [] };
    one.points = await figure.evaluate(f => [...f.querySelectorAll('.curve:not(.raw)')].reduce((n, c) => n + c.getAttribute('d').match(/[ML]/g).length, 0));
    for (const kind of ['CSV', 'SVG', 'PNG']) {
      const file = await download(page, figure.getByRole('button', { name: kind }), '.' + kind.toLowerCase());
      await file.saveAs(`${task.files}/${file.suggestedFilename()}`);
      one.names.push(file.suggestedFilename());
    }
    saved.push(one);
  }
  return saved;
}

// sideways lists what is wider than a screen: the page, or a part of it that has to be scrolled.
const sideways = () => [document.documentElement, ...document.querySelectorAll('.scroll, main, .card, pre')]
  .filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0).map(e => `sideways: ${e.tagName.toLowerCase()}.${e.className} is ${e.scrollWidth} px wide, and there are ${e.clientWidth}`);

// look loads a page once at a width, and looks at it in every theme.
async function look(page, width, { name, url, saves, plain }) {
  const seenOfLoad = { name, width, errors: [], outside: [] };
  const listeners = {
    console: m => { if (m.type() === 'error') seenOfLoad.errors.push(m.text()); },
    pageerror: e => seenOfLoad.errors.push(String(e)),
    request: r => { if (new URL(r.url()).origin !== new URL(url).origin && !/^(data|blob):/.test(r.url())) seenOfLoad.outside.push(r.url()); },
  };
  for (const [event, listener] of Object.entries(listeners)) page.on(event, listener);
  await page.emulateMedia({ colorScheme: inThemes[0] });
  await page.goto(url, { waitUntil: 'domcontentloaded' });
  if (!plain) await ready(page);
  Object.assign(seenOfLoad, await page.evaluate(() => ({
    title: document.title, text: document.querySelector('main').innerText.slice(0, 20000),
    maps: [...document.querySelectorAll('svg.map')].map(m => m.getAttribute('aria-label')),
    // The first paint that counts is of content: the page's own, with its charts, not of an empty frame.
    paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null,
    shown: performance.getEntriesByName('shown')[0]?.startTime ?? null,
  })));
  if (!task.quick) await page.evaluate(axe); // by the protocol, beside the page's own policy: the page itself loads nothing of others
  for (const theme of inThemes) {
    const one = { theme, violations: [] }, first = theme === inThemes[0];
    if (!first) await page.emulateMedia({ colorScheme: theme });
    if (!task.quick) one.violations = await examine(page, first, width < 640 && !plain);
    if (saves && first && width === inWidths[0]) one.saved = await save(page);
    if (task.shots) await page.screenshot({ path: `${task.shots}/${name.replace(/[^a-z0-9]+/gi, '-').slice(0, 60)}-${theme}-${width}.png`, fullPage: task.whole });
    seen.push({ ...seenOfLoad, ...one });
  }
  for (const [event, listener] of Object.entries(listeners)) page.off(event, listener);
}

// examine says what axe-core finds on a page as it is shown, and on a phone what has to be scrolled sideways. Another theme changes
// colours alone: then the rules about colours are asked again, and no others.
async function examine(page, whole, phone) {
  const only = whole ? {} : { runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } };
  const found = await page.evaluate(only => axe.run(document, { resultTypes: ['violations'], preload: false, ...only }), only);
  const list = found.violations.map(v => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map(n => n.target.join(' ')).join('; ')}`);
  if (phone && whole) list.push(...await page.evaluate(sideways));
  return list;
}

async function reconnect({ url, shows, rounds }) {
  const page = await open(await browser.newContext({ reducedMotion: 'reduce' }), url), one = { name: 'reconnect', theme: 'light' };
  await ready(page);
  const live = () => page.waitForFunction(() => document.getElementById('live').className.includes('live-live'));
  await live();
  console.log('now');
  await new Promise(done => process.stdin.once('data', done));
  await page.waitForFunction(text => document.querySelector('.tiles')?.innerText.includes(text), shows);
  await live();
  one.reconnected = true;
  await page.waitForFunction(text => document.querySelector('.rounds')?.ariaLabel.startsWith(text), rounds);
  one.rounds = await page.locator('.rounds').getAttribute('aria-label');
  one.chart_ms = await page.evaluate(async () => {
    const { chart } = await import('/chart.js'), n = 10000, x = Array.from({ length: n }, (_, i) => i), began = performance.now();
    const figure = chart({ title: 'Ten thousand', series: [{ label: 'a', color: 'a', x, y: x.map(i => Math.sin(i / 300)) }], xLabel: 'step', log: false, weight: 0 });
    document.getElementById('main').replaceChildren(figure);
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    const points = figure.querySelector('.curve').getAttribute('d').split('L').length;
    if (points !== n) throw new Error(points + ' points');
    return performance.now() - began;
  });
  one.saved = await save(page);
  await page.close();
  return one;
}

// keys uses a page as somebody does who has no pointer, and says what came of it.
async function keys({ url, next, goes }) {
  const page = await open(await browser.newContext({ reducedMotion: 'reduce' }), url), one = { name: 'keys', theme: 'light', keys: {} };
  const at = path => page.waitForFunction(p => document.getElementById('main').dataset.ready?.startsWith(p), path);
  await ready(page);
  await page.keyboard.press('Tab');
  one.keys.first = await page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press('?');
  await page.waitForFunction(() => document.getElementById('help').open);
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => !document.getElementById('help').open);
  const theme = await page.evaluate(() => document.documentElement.dataset.theme);
  await page.keyboard.press('t');
  await page.waitForFunction(before => document.documentElement.dataset.theme !== before, theme);
  await page.keyboard.press(']');
  await at(next);
  one.keys.tab = next;
  await page.locator('svg.chart').first().focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  one.keys.reads = await page.evaluate(() => document.activeElement.closest('.plot').parentElement.querySelector('[aria-live]').textContent);
  // The letter counts within a second after g: on a busy machine it takes more than one try.
  for (const end = Date.now() + patience; Date.now() < end && !one.keys.went;) {
    await page.keyboard.press('g');
    await page.keyboard.press(goes.key);
    if (await page.evaluate(p => location.pathname === p, goes.path)) one.keys.went = goes.path;
  }
  await at(goes.path);
  await page.keyboard.press('Tab');
  one.keys.moves = await page.evaluate(() => document.activeElement !== document.body);
  await page.close();
  return one;
}

process.stdin.on('end', async () => { await browser.close(); process.exit(1); });
process.stdin.resume();

try {
  if (task.shots) mkdirSync(task.shots, { recursive: true });
  if (task.reconnect) seen.push(await reconnect(task.reconnect));
  if (task.keys) seen.push(await keys(task.keys));
  await Promise.all(task.pages ? inWidths.map(async width => { // a tab of each width, beside each other
    const page = await open(await browser.newContext({ viewport: { width, height: 900 }, reducedMotion: 'reduce' }), 'about:blank');
    for (const one of task.pages) await look(page, width, one);
  }) : []);
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen) + '\n', () => process.exit());
