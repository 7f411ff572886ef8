// A network after its latest block.

import { h, fill, count, zen, chip, table, tile, empty, link, card, short, words, ago, meter } from '../dom.js';
import { get, stream } from '../api.js';
import { mesh, fetched } from './record.js';

export const none = what => h('section.card', {}, empty(`This server was told of no network, so it knows of no ${what}. Name the HTTP interface of a validator:`, 'starling web --network http://127.0.0.1:26601'));

// ask returns null where there is no network.
export async function ask(path, signal) {
  const { network } = await get('/v1/version', signal);
  return network ? get(path, signal) : null;
}

export async function network({ root, signal }) {
  const first = await ask('/v1/network', signal);
  if (!first) return fill(root, h('h1', {}, 'Network'), none('network'));
  function draw(n) {
    const workers = n.participants.filter(p => p.roles.includes('worker')), verifiers = n.participants.filter(p => p.roles.includes('verifier'));
    fill(root, h('div.head', {}, h('h1', {}, n.chain_id), chip(n.catching_up ? 'catching up' : 'up to date', n.catching_up ? 'wait' : 'good')), h('p.lead', {}, `As the validator ${n.address ? 'at ' + n.address : 'of this process'} sees it, after the block of ${ago(n.block_time)}.`),
      h('div.tiles', {}, tile('Height', count(n.height)), tile('Validators', count(n.validators.length), `${n.validators.filter(v => v.signed).length} signed the block`), tile('Workers', count(workers.length), `${workers.filter(p => p.offers).length} offer work`),
        tile('Verifiers', count(verifiers.length)), tile('Runs', count(n.runs.length), `${n.orders.length} orders wait`), tile('Staked', zen(n.participants.reduce((s, p) => s + p.stake_uzen, 0)), 'ZEN'), tile('Jailed', count(n.participants.filter(p => p.jailed).length))),
      card('Runs', n.runs.length ? table('Runs', [
        { head: 'Job', cell: r => short(r.job, 14, 6) }, { head: 'Phase', cell: r => chip(r.phase, 'busy') }, { head: 'Round', wide: true, cell: r => [`${count(r.round)} of ${count(r.rounds)}`, meter(r.round / r.rounds, 'rounds')] }, { head: 'Not final', number: true, cell: r => count(r.open_rounds) },
        { head: 'Workers', number: true, cell: r => count(r.workers) }, { head: 'Verifiers', number: true, cell: r => count(r.verifiers) }, { head: 'Paid of budget, ZEN', number: true, cell: r => `${zen(r.paid_uzen)} of ${zen(r.budget_uzen)}` },
      ], n.runs) : empty('No job runs.', 'starling train job.yaml --network ' + (n.address || 'URL') + ' --home DIR')),
      card('Orders that wait', n.orders.length ? table('Orders', [{ head: 'Job', cell: o => short(o.job, 14, 6) }, { head: 'Waits for', wide: true, cell: o => words(o.why) }, { head: 'Budget, ZEN', number: true, cell: o => zen(o.budget_uzen) }], n.orders) : h('p.soft', {}, 'None: every order has its workers.')),
      card('Who takes part', participants(n.participants)),
      n.links.length > 0 && card('Map', mesh(n.links)),
      fetched(n.links, n.links.length ? 'As participants reported it to the chain in the epoch that goes on. What is paid for bytes, and taken for fewer than were promised, follows from it.' : 'Nobody has reported in this epoch. Members of runs report what they fetched from each other, once it is a mebibyte.'));
  }
  draw(first);
  stream('/v1/events', { network: n => { if (!root.contains(document.activeElement)) draw(n); } }, signal);
}

export function participants(list) {
  return list.length ? table('Participants', [
    { head: 'Account', cell: p => link('/workers/' + p.id, short(p.id, 14, 6)) }, { head: 'Roles', cell: p => p.roles.join(', ') || h('span.soft', {}, 'none') },
    { head: 'State', cell: p => p.jailed ? chip('jailed', 'bad') : p.jobs.length ? chip('working', 'good') : p.offers ? chip('offers work', 'busy') : chip('idle') },
    { head: 'Jobs', wide: true, cell: p => p.jobs.map(j => [short(j, 14, 6), ' ']) }, { head: 'Price, ZEN per 10¹⁵', number: true, cell: p => p.offers ? zen(p.price) : '–' }, { head: 'Stake, ZEN', number: true, cell: p => zen(p.stake_uzen) }, { head: 'Machine', cell: p => h('span.small.soft', {}, p.device) },
  ], list) : empty('Nobody is registered.', 'starling worker up --network URL --home DIR');
}
