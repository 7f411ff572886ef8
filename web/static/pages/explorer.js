// Blocks, transactions and accounts of a network.

import { h, fill, count, zen, chip, table, empty, link, card, copyable, short, plural, ago, facts, segments } from '../dom.js';
import { get, stream } from '../api.js';
import { ask, none } from './network.js';

const type = m => m.split('.').at(-1).replace(/^Msg/, '').replace(/(?<=[a-z])(?=[A-Z])/g, ' ');
const cursor = height => btoa(String(height)).replace(/=+$/, '');
const of = id => link('/explorer/account/' + encodeURIComponent(id), short(id, 12, 6));

export async function explorer({ root, params: [kind, id], query, signal, go }) {
  const search = h('form.bar', { role: 'search', onsubmit: e => {
    e.preventDefault();
    const text = input.value.trim();
    if (/^[0-9a-fA-F]{64}$/.test(text)) go('/explorer/tx/' + text);
    else if (/^\d+$/.test(text)) go('/explorer?height=' + text);
    else if (text) go('/explorer/account/' + encodeURIComponent(text));
    else go('/explorer');
  } }, h('input', { type: 'search', placeholder: 'Height, hash or account', 'aria-label': 'Height, hash or account', value: id ?? query.get('height') ?? '' }), h('button.act', {}, 'Look'));
  const input = search.firstChild, body = h('div', {});
  const head = [h('div.head', {}, h('h1', {}, 'Explorer')), h('p.lead', {}, 'What is on the chain.'), search, body];
  if (!await ask('/v1/network', signal)) return fill(root, h('h1', {}, 'Explorer'), none('block'));
  fill(root, head);
  const height = Number(query.get('height')) || 0;
  if (kind === 'tx') return fill(body, transaction(await get(`/v1/txs/${id}${height ? '?height=' + height : ''}`, signal)));
  if (kind === 'account') return fill(body, account(await get('/v1/accounts/' + id, signal)));
  let busy = query.get('busy') === '1', after = height ? cursor(height + 1) : '', shown = [];
  const which = segments('Blocks', [['', 'All blocks'], ['1', 'With transactions']], busy ? '1' : '', value => {
    busy = value === '1';
    go('/explorer' + (busy ? '?busy=1' : ''), true);
    after = '';
    shown = [];
    page();
  });
  search.append(h('span.grow', {}), which);
  const more = h('button.act', { type: 'button', hidden: true, onclick: () => page() }, 'Older blocks'), list = h('div', {});
  const ask30 = from => get(`/v1/blocks?limit=30&after=${from}${busy ? '&busy=true' : ''}`, signal);
  async function page() {
    const b = await ask30(after);
    shown = shown.concat(b.blocks);
    after = b.after ?? '';
    more.hidden = !b.has_more;
    fill(list, blocks(shown, busy && b.has_more));
  }
  await page();
  fill(body, card('Blocks', list, more));
  if (!height) stream('/v1/events', { network: async () => {
    if (body.contains(document.activeElement) && document.activeElement !== document.body) return;
    const b = await ask30('').catch(() => null);
    if (!b) return;
    shown = b.blocks.concat(shown.filter(x => x.height < (b.blocks.at(-1)?.height ?? Infinity)));
    fill(list, blocks(shown, busy && b.has_more));
  } }, signal);
}

// what a transaction does, in a line: who gets how much, or the types of its messages.
function what(t) {
  const kinds = [...Map.groupBy(t.messages.map(type), m => m)].map(([m, all]) => all.length > 1 ? `${m} × ${all.length}` : m).join(' + ') || 'transaction';
  const [first, ...rest] = t.transfers;
  return [link(`/explorer/tx/${t.hash}?height=${t.height}`, kinds), first && h('span.soft', {}, ` ${zen(first.uzen)} ZEN to `, h('code', { title: first.to }, first.to.slice(0, 12) + '…' + first.to.slice(-6)), rest.length > 0 && ` and ${plural(rest.length, 'more')}`),
    t.code > 0 && h('span.bad', {}, ' refused')];
}

function blocks(list, further) {
  return list.length ? table('Blocks', [
    { head: 'Height', number: true, cell: b => link('/explorer?height=' + b.height, count(b.height)) }, { head: 'Time', cell: b => h('span', { title: b.time }, ago(b.time)) }, { head: 'Hash', cell: b => copyable(b.hash, 10, 6) },
    { head: 'Proposer', cell: b => short(b.proposer, 8, 4) }, { head: 'Votes', number: true, cell: b => count(b.signed) },
    { head: 'Transactions', wide: true, cell: b => b.txs.length ? b.txs.map(t => h('div', {}, what({ ...t, height: b.height }))) : h('span.soft', {}, 'none') },
  ], list) : empty(further ? 'The latest blocks have no transactions; older ones may.' : 'There is no block here.');
}

function transaction(t) {
  return card('Transaction', facts([['Hash', copyable(t.hash, 64, 0)], ['Height', link('/explorer?height=' + t.height, count(t.height))], ['Outcome', chip(t.code ? 'refused' : 'executed', t.code ? 'bad' : 'good')], ['Messages', t.messages.join(', ')],
    ['By', t.signers.map(s => h('div', {}, of(s)))], ['Fee', zen(t.fee_uzen) + ' ZEN'], ['Memo', t.memo || h('span.soft', {}, 'none')], ['Gas', count(t.gas_used)], ['Size', `${count(t.bytes)} bytes`], t.log && ['Log', h('span.mono', {}, t.log)]]),
  t.transfers.length > 0 && [h('h3', {}, t.code ? 'Coins that it would have sent' : 'Coins that it sent'), table('Transfers', [
    { head: 'From', cell: x => x.from ? of(x.from) : '–' }, { head: 'To', cell: x => of(x.to) }, { head: 'Amount, ZEN', number: true, cell: x => zen(x.uzen) },
  ], t.transfers)]);
}

function account(a) {
  return card('Account', facts([['Address', copyable(a.address, 64, 0)], ['Balance', zen(a.balance_uzen) + ' ZEN'], ['Stake', zen(a.stake_uzen) + ' ZEN'], ['Slashed', zen(a.slashed_uzen) + ' ZEN'],
    ['State', a.jailed ? chip('jailed', 'bad') : plural(a.reasons.length, 'thing') + ' to do or to wait for']]), h('p.below', {}, link('/workers/' + a.address, 'What it does and waits for')));
}
