// Blocks, transactions and accounts of a network.

import { h, fill, count, zen, chip, table, empty, link, card, copyable, short, plural, ago } from '../dom.js';
import { get, stream } from '../api.js';
import { ask, none } from './network.js';

const type = m => m.split('.').at(-1).replace(/^Msg/, '');

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
  let after = height ? btoa(String(height + 1)).replace(/=+$/, '') : '', shown = [];
  const more = h('button.act', { type: 'button', hidden: true, onclick: () => page() }, 'Older blocks'), list = h('div', {});
  async function page() {
    const b = await get(`/v1/blocks?limit=30&after=${after}`, signal);
    shown = shown.concat(b.blocks);
    after = b.after ?? '';
    more.hidden = !b.has_more;
    fill(list, blocks(shown));
  }
  await page();
  fill(body, card('Blocks', list, more));
  if (!height) stream('/v1/events', { network: async () => {
    if (body.contains(document.activeElement) && document.activeElement !== document.body) return;
    const b = await get('/v1/blocks?limit=30', signal).catch(() => null);
    if (!b) return;
    shown = b.blocks.concat(shown.filter(x => x.height < (b.blocks.at(-1)?.height ?? 0)));
    fill(list, blocks(shown));
  } }, signal);
}

function blocks(list) {
  return list.length ? table('Blocks', [
    { head: 'Height', number: true, cell: b => link('/explorer?height=' + b.height, count(b.height)) }, { head: 'Time', cell: b => h('span', { title: b.time }, ago(b.time)) }, { head: 'Hash', cell: b => copyable(b.hash, 10, 6) },
    { head: 'Proposer', cell: b => short(b.proposer, 8, 4) }, { head: 'Votes', number: true, cell: b => count(b.signed) },
    { head: 'Transactions', wide: true, cell: b => b.txs.length ? b.txs.map((t, i) => [i > 0 && ', ', link(`/explorer/tx/${t.hash}?height=${b.height}`, t.messages.map(type).join(' + ') || 'transaction'), t.code > 0 && h('span.bad', {}, ' refused')]) : h('span.soft', {}, 'none') },
  ], list) : empty('There is no block here.');
}

function transaction(t) {
  return card('Transaction', h('dl.facts', {}, [['Hash', copyable(t.hash, 64, 0)], ['Height', link('/explorer?height=' + t.height, count(t.height))], ['Outcome', chip(t.code ? 'refused' : 'executed', t.code ? 'bad' : 'good')], ['Messages', t.messages.join(', ')],
    ['By', t.signers.map(s => h('div', {}, link('/explorer/account/' + s, s)))], ['Gas', count(t.gas_used)], ['Size', `${count(t.bytes)} bytes`], t.log && ['Log', h('span.mono', {}, t.log)]].filter(Boolean).map(([k, v]) => [h('dt', {}, k), h('dd', {}, v)])));
}

function account(a) {
  return card('Account', h('dl.facts', {}, [['Address', copyable(a.address, 64, 0)], ['Balance', zen(a.balance_uzen) + ' ZEN'], ['Stake', zen(a.stake_uzen) + ' ZEN'], ['Slashed', zen(a.slashed_uzen) + ' ZEN'], ['State', a.jailed ? chip('jailed', 'bad') : plural(a.reasons.length, 'thing') + ' to do or to wait for']]
    .map(([k, v]) => [h('dt', {}, k), h('dd', {}, v)])), h('p', {}, link('/workers/' + a.address, 'What it does and waits for')));
}
