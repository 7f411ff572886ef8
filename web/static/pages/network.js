// A network after its latest block.

import { h, fill, count, zen, zens, money, chip, table, tile, empty, link, card, short, words, ago, meter, plural, person } from '../dom.js';
import { all, get, stream } from '../api.js';
import { heat } from './map.js';

export const none = what => h('section.card', {}, empty(`This server was told of no network, so it knows of no ${what}. Name the HTTP interface of a validator:`, 'starling web --network http://127.0.0.1:26601'));

// ask returns null where there is no network.
export async function ask(path, signal) {
  const { network } = await get('/v1/version', signal);
  return network ? get(path, signal) : null;
}

export async function network({ root, signal }) {
  const first = await ask('/v1/network', signal);
  if (!first) return fill(root, h('h1', {}, 'Network'), none('network'));
  const runs = await runsOf(signal), job = id => jobOf(id, runs);
  function draw(n) {
    const workers = n.participants.filter(p => p.roles.includes('worker')), verifiers = n.participants.filter(p => p.roles.includes('verifier'));
    fill(root, h('div.head', {}, h('h1', {}, n.chain_id), chip(n.catching_up ? 'catching up' : 'up to date', n.catching_up ? 'wait' : 'good')), h('p.lead', {}, `As the validator ${n.address ? 'at ' + n.address : 'of this process'} sees it, after the block of ${ago(n.block_time)}.`),
      h('div.tiles', {}, tile('Height', count(n.height)), tile('Validators', count(n.validators.length), `${n.validators.filter(v => v.signed).length} signed the block`), tile('Workers', count(workers.length), `${workers.filter(p => p.offers).length} offer work`),
        tile('Verifiers', count(verifiers.length)), tile('Runs', count(n.runs.length), `${plural(n.orders.length, 'order')} ${n.orders.length === 1 ? 'waits' : 'wait'}`), tile('Staked', zen(n.participants.reduce((s, p) => s + p.stake_uzen, 0)), 'ZEN'), tile('Jailed', count(n.participants.filter(p => p.jailed).length))),
      card('Runs', n.runs.length ? table('Runs', [
        { head: 'Job', cell: r => job(r.job) }, { head: 'Phase', cell: r => chip(r.phase, 'busy') }, { head: 'Round', wide: true, cell: r => [`${count(r.round)} of ${count(r.rounds)}`, meter(r.round / r.rounds, 'rounds')] }, { head: 'Not final', number: true, cell: r => count(r.open_rounds) },
        { head: 'Workers', number: true, cell: r => count(r.workers) }, { head: 'Verifiers', number: true, cell: r => count(r.verifiers) }, { head: 'Paid of budget', number: true, cell: r => `${money(r.paid_uzen, r)} of ${money(r.budget_uzen, r)}` },
      ], n.runs) : empty('No job runs.', 'starling train job.yaml --network ' + (n.address || 'URL') + ' --home DIR')),
      card('Orders that wait', n.orders.length ? table('Orders', [{ head: 'Job', cell: o => job(o.job) }, { head: 'Waits for', wide: true, cell: o => words(o.why) }, { head: 'Budget', number: true, cell: o => money(o.budget_uzen, o) }], n.orders) : h('p.soft', {}, 'None: every order has its workers.')),
      card('Who takes part', participants(n.participants, runs)),
      heat(n.links, n.links.length ? 'As participants reported it to the chain in the epoch that goes on. What is paid for bytes, and taken for fewer than were promised, follows from it.' : 'Nobody has reported in this epoch. Members of runs report what they fetched from each other, once it is a mebibyte.'));
  }
  draw(first);
  stream('/v1/events', { job: j => note(runs, j), network: n => { if (!root.contains(document.activeElement)) draw(n); } }, signal);
}

// runsOf are the runs of this server by the job that they train: one of a folder says more than what the chain knows of it.
export async function runsOf(signal) {
  const runs = new Map();
  for (const j of await all('/v1/jobs', 'jobs', signal)) note(runs, j);
  return runs;
}
// The latest run of a folder counts.
const note = (runs, j) => { if (j.job && j.kind !== 'simulation' && (!runs.has(j.job) || j.kind === 'run' && runs.get(j.job).kind !== 'run')) runs.set(j.job, j); };

// jobOf is a job, linked to its run where this server shows it.
export function jobOf(id, runs) {
  const run = runs.get(id);
  return run ? link('/jobs/' + encodeURIComponent(run.id), run.kind === 'run' ? run.name : short(id, 14, 6)) : short(id, 14, 6);
}

export function participants(list, runs) {
  const write = zens(list.filter(p => p.offers).map(p => p.price)), foreign = list.some(p => p.asks);
  return list.length ? table('Participants', [
    { head: 'Account', cell: p => person(p.id) }, { head: 'Roles', cell: p => p.roles.join(', ') || h('span.soft', {}, 'none') },
    { head: 'State', cell: p => p.jailed ? chip('jailed', 'bad') : p.jobs.length ? chip('working', 'good') : p.offers ? chip('offers work', 'busy') : chip('idle') },
    { head: 'Jobs', wide: true, cell: p => p.jobs.map(j => h('div', {}, jobOf(j, runs))) }, { head: h('abbr', { title: '10¹⁵ floating-point operations' }, foreign ? 'A PFLOP' : 'ZEN per PFLOP'), number: true, cell: p => !p.offers ? '–' : foreign ? [p.price || !p.asks ? [{ price: p.price }] : [], p.asks ?? []].flat().map(a => h('div', {}, money(a.price, a))) : write(p.price) }, { head: 'Stake, ZEN', number: true, cell: p => [zen(p.stake_uzen), p.delegated_uzen > 0 && h('div.small.soft', {}, `${zen(p.delegated_uzen)} delegated`)] }, { head: 'Machine', cell: p => h('span.small.soft', {}, p.device) },
  ], list) : empty('Nobody is registered.', 'starling worker up --network URL --home DIR');
}
