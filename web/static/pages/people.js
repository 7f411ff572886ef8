// Workers, one of them, and validators.

import { h, fill, count, zen, zens, sums, column, chip, table, tile, empty, link, card, copyable, meter, account as written, person, audits } from '../dom.js';
import { all, get } from '../api.js';
import { ask, none, participants, runsOf, jobOf } from './network.js';

// Everybody who took part in a run of this server, and in which.
async function known(signal) {
  const jobs = (await all('/v1/jobs?kind=run', 'jobs', signal)).slice(0, 40), people = new Map();
  await Promise.all(jobs.map(async j => {
    for (const m of (await get(`/v1/jobs/${encodeURIComponent(j.id)}/workers`, signal)).members) {
      if (m.role === 'pool') continue;
      if (!people.has(m.id)) people.set(m.id, []);
      people.get(m.id).push({ job: j, ...m });
    }
  }));
  return people;
}

const sum = (list, f) => list.reduce((n, x) => n + f(x), 0);

export async function workers({ root, signal }) {
  const [net, people, runs] = await Promise.all([ask('/v1/workers', signal), known(signal), runsOf(signal)]);
  const rows = [...people].map(([id, parts]) => ({ id, parts })).sort((a, b) => sum(b.parts, p => p.coin ? 0 : p.uzen) - sum(a.parts, p => p.coin ? 0 : p.uzen));
  const got = r => sum(r.parts.filter(p => p.role !== 'consumer'), p => p.uzen), foreign = rows.some(r => r.parts.some(p => p.coin)), write = zens(rows.map(got).filter(Boolean));
  fill(root, h('div.head', {}, h('h1', {}, 'Workers')), h('p.lead', {}, 'Who does the work, what it earned, and why not more.'),
    net && card(`On the network at height ${count(net.height)}`, participants(net.workers, runs)),
    card('In the runs of this server', rows.length ? table('Members of runs', [
      { head: 'Account', cell: r => person(r.id) }, { head: 'Role', cell: r => [...new Set(r.parts.map(p => p.role))].join(', ') }, { head: 'Runs', wide: true, cell: r => r.parts.map((p, i) => [i > 0 && ', ', link('/jobs/' + encodeURIComponent(p.job.id), p.job.name === p.job.id ? p.job.id : `${p.job.name} (${p.job.id})`)]) },
      { head: 'Units', number: true, cell: r => count(sum(r.parts, p => p.units)) }, { head: 'Audits', number: true, cell: r => count(sum(r.parts, p => p.audits.drawn)) }, { head: 'Unpaid', number: true, cell: r => count(sum(r.parts, p => p.zero_receipts)) },
      { head: foreign ? 'Earned' : 'Earned, ZEN', number: true, cell: r => foreign ? sums(r.parts.filter(p => p.role !== 'consumer'), p => p.uzen) : write(got(r)) }, { head: 'Slashed, ZEN', number: true, cell: r => sum(r.parts, p => p.slashed_uzen) ? h('span.bad', {}, zen(sum(r.parts, p => p.slashed_uzen))) : '–' },
    ], rows) : empty('Nobody has worked yet.', 'starling train examples/quickstart.yaml')));
}

export async function worker({ root, params: [id], signal }) {
  const [account, people, runs] = await Promise.all([ask('/v1/accounts/' + encodeURIComponent(id), signal).catch(e => { if (e.problem?.status === 404 || e.problem?.status === 400 || e.problem?.status === 500) return null; throw e; }), known(signal), runsOf(signal)]);
  const parts = people.get(id) ?? [], earned = sums(parts.filter(p => p.role !== 'consumer'), p => p.uzen), pay = column(parts, p => p.uzen), slashed = sum(parts, p => p.slashed_uzen);
  const days = zens((account?.earned ?? []).map(d => d.received_uzen).filter(Boolean));
  document.title = id.slice(0, 16) + ' · Starling';
  if (!account && !parts.length) return fill(root, h('h1', {}, 'Worker'), h('section.card', {}, empty('Nobody with this account is known here.', 'starling worker explain --home DIR')));
  fill(root, h('p.crumb', {}, link('/workers', 'Workers')), h('div.head', {}, h('h1', {}, written(id)), account?.jailed && chip('jailed', 'bad'), slashed > 0 && chip('slashed', 'bad')), h('p.lead', {}, copyable(id, 64, 0)),
    h('div.tiles', {}, account && [tile('Balance', zen(account.balance_uzen), 'ZEN'), tile('Stake', zen(account.stake_uzen), 'ZEN')], tile('Earned here', earned, ''), tile('Units', count(sum(parts, p => p.units))),
      tile('Audits', count(sum(parts, p => p.audits.drawn)), audits(['drawn', 'passed', 'failed', 'moot', 'missed'].reduce((all, k) => ({ ...all, [k]: sum(parts, p => p.audits[k]) }), {}))), tile('Unpaid', count(sum(parts, p => p.zero_receipts)), 'receipts of zero'), tile('Slashed', zen(slashed), 'ZEN', slashed ? 'bad' : '')),
    account?.now && card('Why it earns, or not', h('p', {}, chip(account.now.code.replaceAll('_', ' '), account.now.code === 'working' ? 'good' : 'wait'), ' ', account.now.text), account.now.next && h('p.small.soft', {}, account.now.next)),
    account && card('What it does and waits for', account.reasons.length ? table('Standing', [
      { head: 'Kind', cell: r => chip(r.kind, { works: 'good', waits: 'wait', blocked: 'bad', over: 'plain' }[r.kind]) }, { head: 'What', wide: true, cell: r => [r.text, r.do && h('div.small.soft', {}, r.do)] }, { head: 'Job', cell: r => r.job ? jobOf(r.job, runs) : '–' },
      { head: 'Round', number: true, cell: r => r.round || '–' }, { head: 'Until height', number: true, cell: r => r.until ? count(r.until) : '–' },
    ], account.reasons) : h('p.soft', {}, 'Nothing: it takes part in no run.')),
    account?.earned?.length > 0 && card('What it earned by day', table('Days', [
      { head: 'Day, UTC', wide: true, cell: d => d.day || 'before the blocks that are kept' }, { head: 'Received, ZEN', number: true, cell: d => days(d.received_uzen) },
      { head: 'Lost, ZEN', number: true, cell: d => d.lost_uzen ? h('span.bad', {}, zen(d.lost_uzen)) : '–' }, { head: 'Receipts', number: true, cell: d => count(d.receipts) }, { head: 'Unpaid', number: true, cell: d => count(d.unpaid) },
    ], account.earned)),
    card('Its part in runs', parts.length ? table('Runs', [
      { head: 'Run', cell: p => link('/jobs/' + encodeURIComponent(p.job.id), p.job.name) }, { head: 'Role', cell: p => p.role || 'member' }, { head: 'Units', number: true, cell: p => count(p.units) }, { head: 'Signed', number: true, cell: p => count(p.signed) },
      { head: parts.some(p => p.coin) ? 'Earned' : 'Earned, ZEN', number: true, cell: pay }, { head: 'Receipts', number: true, cell: p => link(`/jobs/${encodeURIComponent(p.job.id)}/receipts?who=${id}`, count(p.paid_receipts + p.zero_receipts)) },
      { head: 'Unpaid, and why', wide: true, cell: p => [p.slashed_uzen > 0 && h('div.bad', {}, `slashed ${zen(p.slashed_uzen)} ZEN`), p.zeros.map(z => h('div.small.soft', {}, z))] },
    ], parts) : h('p.soft', {}, 'It is in no run of this server.')));
}

export async function validators({ root, signal }) {
  const v = await ask('/v1/validators', signal);
  if (!v) return fill(root, h('h1', {}, 'Validators'), none('validator'));
  const power = sum(v.validators, x => x.power), signed = sum(v.validators.filter(x => x.signed), x => x.power);
  fill(root, h('div.head', {}, h('h1', {}, 'Validators')), h('p.lead', {}, 'Who votes on blocks, and whether its vote is in the latest one. With a third of the power away the chain stands still.'),
    h('div.tiles', {}, tile('Height', count(v.height)), tile('Validators', count(v.validators.length)), tile('Power', count(power)), tile('Signed', power ? (100 * signed / power).toFixed(0) + ' %' : '–', 'of the power', signed * 3 < power * 2 ? 'bad' : '')),
    card('Who votes', table('Validators', [{ head: 'Address of its votes', cell: x => copyable(x.address, 24, 8) }, { head: 'Power', number: true, cell: x => count(x.power) }, { head: 'Share', wide: true, cell: x => [(100 * x.power / power).toFixed(1) + ' %', meter(x.power / power, 'share of the power')] },
      { head: `Missed of ${count(v.window_blocks)} blocks`, number: true, cell: x => x.missed_blocks ? h('span' + (2 * x.missed_blocks > v.window_blocks ? '.bad' : ''), {}, count(x.missed_blocks)) : '0' },
      { head: 'Latest block', cell: x => chip(x.signed ? 'signed' : 'missed', x.signed ? 'good' : 'bad') }], v.validators)),
    card('One of your own', h('p.lead', {}, 'What it missed, its peers and whether it is jailed:'), h('code.command', {}, 'starling validator status --home HOME')));
}
