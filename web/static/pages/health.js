// Whether the server, and what it shows, works.

import { h, fill, chip, table, duration, count, card, facts } from '../dom.js';
import { get } from '../api.js';

export async function health({ root, signal }) {
  async function draw() {
    const [health, version] = await Promise.all([get('/v1/health', signal), get('/v1/version', signal)]);
    fill(root, h('div.head', {}, h('h1', {}, 'Health'), chip(health.status, health.status === 'ok' ? 'good' : 'bad')),
      h('p.lead', {}, `This server has been up for ${duration(health.uptime_seconds)}.`),
      card('Checks', table('Checks', [
        { head: 'What', cell: c => c.name }, { head: 'State', cell: c => chip(c.ok ? 'ok' : 'look', c.ok ? 'good' : 'bad') }, { head: 'What was seen', wide: true, cell: c => c.text },
      ], health.checks)),
      card('Server', facts([['Version', version.version], ['API', version.api], ['Go', version.go], ['Numerics', count(version.numerics)], ['Jobs can be submitted', version.submits ? 'yes' : 'no: starling train starts them'],
          ['A network is shown', version.network ? 'yes' : 'no: start with --network URL'], ['A token is needed', version.auth ? 'yes' : 'no: only this machine reaches the server']])),
      card('For programs', h('p', {}, 'The API is described at ', h('a', { href: '/openapi.json', target: '_blank' }, '/openapi.json'), ', metrics for Prometheus are at ', h('a', { href: '/metrics', target: '_blank' }, '/metrics'), '.')));
  }
  await draw();
  const t = setInterval(() => draw().catch(() => {}), 5000);
  signal.addEventListener('abort', () => clearInterval(t));
}
