// Checks signed claims of keys of Ed25519 (docs/payouts.md): a reference for programs of other chains, which shares no
// code with the network. `node statement.mjs FILE ROOT NETWORK CHAIN CONTRACT EPOCH` checks a file of statements, in
// JSON or in bytes, a line each, against what the program knows: its own chain and contract, the network by its digest,
// and the latest root with its epoch.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import * as ed25519 from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';

ed25519.etc.sha512Sync = (...parts) => sha512(ed25519.etc.concatBytes(...parts));

const digits = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const text = (s) => new TextEncoder().encode(s);
const concat = (...parts) => Uint8Array.from(parts.flatMap((p) => [...p]));
const same = (a, b) => a.length === b.length && a.every((x, i) => x === b[i]);
const word = (n) => bytes(n.toString(16).padStart(64, '0'), 32);
const padded = (address) => concat(new Uint8Array(12), address);

// bytes reads hexadecimal digits in lower case, or of an address with a checksum, and no others.
function bytes(hex, size) {
  assert.match(hex, new RegExp(`^[0-9a-fA-F]{${2 * size}}$`), 'not the digits that are wanted');
  return Uint8Array.from(hex.match(/../g).map((b) => parseInt(b, 16)));
}

function prefixed(hex, size) {
  assert.ok(typeof hex === 'string' && hex.startsWith('0x'), 'no 0x');
  return bytes(hex.slice(2), size);
}

function decimal(s, bits) {
  assert.match(s, /^(0|[1-9][0-9]{0,77})$/, 'not a decimal number');
  const n = BigInt(s);
  assert.ok(n < 1n << bits, 'too large a number');
  return n;
}

function base58(s) {
  assert.match(s, /^[1-9A-HJ-NP-Za-km-z]{32,44}$/, 'not base 58');
  const n = [...s].reduce((sum, c) => sum * 58n + BigInt(digits.indexOf(c)), 0n);
  assert.ok(n < 1n << 256n, 'more than 32 bytes');
  const key = word(n);
  let zeros = 0;
  while (zeros < 32 && key[zeros] === 0) zeros++;
  assert.equal(s.match(/^1*/)[0].length, zeros, 'another number of zeros');
  return key;
}

// read takes a statement of either format apart.
function read(line) {
  if (!line.startsWith('{')) {
    const all = bytes(line, line.length >> 1);
    const at = (i) => all.slice(32 * i, 32 * i + 32);
    const number = (i) => BigInt('0x' + [...at(i)].map((b) => b.toString(16).padStart(2, '0')).join(''));
    assert.ok(all.length >= 12 * 32 && number(9) <= 64n, 'too short, or too long a path');
    const steps = Number(number(9));
    assert.equal(all.length, 32 * (10 + steps) + 64, 'another length');
    assert.ok(same(at(0), keccak_256(text('starling payout claim 1'))), 'another format');
    for (const i of [3, 7]) assert.ok(at(i).slice(0, 12).every((b) => b === 0), 'no address');
    return { network: at(1), chain: number(2), contract: at(3).slice(12), epoch: number(4), root: at(5), key: at(6),
      token: at(7).slice(12), total: number(8), path: Array.from({ length: steps }, (_, i) => at(10 + i)),
      signature: all.slice(-64) };
  }
  const s = JSON.parse(line);
  assert.deepEqual(Object.keys(s).sort(), ['account', 'address', 'chain', 'contract', 'epoch', 'format', 'network',
    'path', 'root', 'signature', 'token', 'total'], 'other fields');
  assert.equal(s.format, 'starling-payout-claim/1', 'another format');
  assert.ok(Array.isArray(s.path) && s.path.length <= 64, 'too long a path');
  return { network: prefixed(s.network, 32), chain: decimal(s.chain, 53n), contract: prefixed(s.contract, 20),
    epoch: decimal(s.epoch, 64n), root: prefixed(s.root, 32), key: base58(s.address), account: prefixed(s.account, 20),
    token: prefixed(s.token, 20), total: decimal(s.total, 256n), path: s.path.map((p) => prefixed(p, 32)),
    signature: bytes(s.signature, 64) };
}

// known is what a program knows, from texts.
export function known(root, network, chain, contract, epoch) {
  return { root: prefixed(root, 32), network: prefixed(network, 32), chain: decimal(chain, 53n),
    contract: prefixed(contract, 20), epoch: decimal(epoch, 64n) };
}

// check returns what a line claims of the program, or throws the reason why it claims nothing. A program has paid an
// account before, and not a key.
export function check(line, { root, network, chain, contract, epoch }) {
  const s = read(line);
  assert.ok(same(s.network, network), 'of another network');
  assert.ok(same(s.root, root), 'under another root');
  assert.equal(s.chain, chain, 'of another chain');
  assert.ok(same(s.contract, contract), 'of another contract');
  assert.equal(s.epoch, epoch, 'of another epoch');
  assert.ok(s.chain >= 1n << 52n, 'of a chain whose addresses are no keys');
  assert.ok(s.total > 0n, 'of nothing');
  const account = keccak_256(concat(text('starling payout key 1'), s.key)).slice(12);
  assert.ok(!s.account || same(s.account, account), 'of another account');
  let node = keccak_256(keccak_256(concat(padded(account), padded(s.token), word(s.total))));
  for (const other of s.path) {
    const less = [...node].findIndex((b, i) => b !== other[i]);
    node = keccak_256(less < 0 || node[less] < other[less] ? concat(node, other) : concat(other, node));
  }
  assert.ok(same(node, root), 'not in the tree');
  const message = concat(keccak_256(text('starling payout claim 1')), s.network, word(s.chain), padded(s.contract),
    word(s.epoch), s.root, s.key, padded(s.token), word(s.total), word(BigInt(s.path.length)), ...s.path);
  assert.ok(ed25519.verify(s.signature, message, s.key), 'not signed by the key');
  return { address: s.key, account, token: s.token, total: s.total };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [file, ...knows] = process.argv.slice(2);
  const at = known(...knows);
  const lines = readFileSync(file, 'utf8').split('\n').filter((l) => l !== '');
  for (const line of lines) check(line, at);
  console.log(`${lines.length} claims hold`);
}
