// Drives the dashboard in Chromium, and says what it saw as one line of JSON on standard output:
//   node drive.js '{"chromium": PATH, "pages": [{"name", "url"}], "themes": ["light"], "shots": DIR}'
// Of every page and theme: errors of the console, requests that leave the server, what axe-core finds, and the time of the
// first paint. With "reconnect": {"url", "shows"} it opens a page, says "now", waits for a line on standard input, and then
// for the page to be live again and to show a text.

import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const task = JSON.parse(process.argv[2]), patience = 60000;
const browser = await chromium.launch({ executablePath: task.chromium, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
const seen = [];

const ready = page => page.waitForFunction(() => document.getElementById('main')?.dataset.ready, null, { timeout: patience });

async function look(context, theme, { name, url }) {
  const page = await context.newPage(), one = { name, theme, errors: [], outside: [], violations: [] };
  page.on('console', m => { if (m.type() === 'error') one.errors.push(m.text()); });
  page.on('pageerror', e => one.errors.push(String(e)));
  page.on('request', r => { if (new URL(r.url()).origin !== new URL(url).origin && !/^(data|blob):/.test(r.url())) one.outside.push(r.url()); });
  await page.goto(url, { waitUntil: 'domcontentloaded', timeout: patience });
  await ready(page);
  one.title = await page.title();
  one.text = (await page.locator('#main').innerText()).slice(0, 20000);
  // The first paint that counts is of content: the page's own, with its charts, not of an empty frame.
  one.paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null);
  one.shown = await page.evaluate(() => performance.getEntriesByName('shown')[0]?.startTime ?? null);
  if (!task.quick) {
    // axe-core is put in by the protocol, beside the page's own policy: the page itself loads nothing of others.
    await page.evaluate(axe);
    const found = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
    one.violations = found.violations.map(v => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map(n => n.target.join(' ')).join('; ')}`);
  }
  if (task.shots) await page.screenshot({ path: `${task.shots}/${name.replace(/[^a-z0-9]+/gi, '-').slice(0, 60)}-${theme}.png`, fullPage: true });
  await page.close();
  return one;
}

async function reconnect({ url, shows }) {
  const page = await browser.newPage({ reducedMotion: 'reduce' }), one = { name: 'reconnect', theme: 'light', downloads: [] };
  await page.goto(url, { timeout: patience });
  await ready(page);
  const live = () => page.waitForFunction(() => document.getElementById('live').className.includes('live-live'), null, { timeout: patience });
  await live();
  console.log('now');
  await new Promise(done => process.stdin.once('data', done));
  process.stdin.destroy();
  await page.waitForFunction(text => document.querySelector('.tiles')?.innerText.includes(text), shows, { timeout: patience });
  await live();
  one.reconnected = true;
  one.chart_ms = await page.evaluate(async () => {
    const { chart } = await import('/chart.js'), n = 10000, x = Array.from({ length: n }, (_, i) => i), began = performance.now();
    const figure = chart({ title: 'Ten thousand', series: [{ label: 'a', color: 'a', x, y: x.map(i => Math.sin(i / 300)) }], xLabel: 'step', log: false, weight: 0 });
    document.getElementById('main').replaceChildren(figure);
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    const points = figure.querySelector('.curve').getAttribute('d').split('L').length;
    if (points !== n) throw new Error(points + ' points');
    return performance.now() - began;
  });
  for (const kind of ['CSV', 'SVG', 'PNG']) {
    const [saved] = await Promise.all([page.waitForEvent('download', { timeout: patience }), page.getByRole('button', { name: 'as ' + kind }).click({ force: true })]);
    one.downloads.push(saved.suggestedFilename());
  }
  await page.close();
  return one;
}

try {
  if (task.shots) mkdirSync(task.shots, { recursive: true });
  if (task.reconnect) seen.push(await reconnect(task.reconnect));
  for (const theme of task.pages ? task.themes ?? ['light', 'dark'] : []) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: theme, reducedMotion: 'reduce' });
    for (const page of task.pages) seen.push(await look(context, theme, page));
    await context.close();
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
