// Has statement.mjs accept and refuse the statements of a file that contracts/statement_test.go writes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { check } from './statement.mjs';

const t = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const raw = (hex) => Uint8Array.from(hex.slice(2).match(/../g).map((b) => parseInt(b, 16)));
for (const [name, line] of Object.entries(t.good)) {
  assert.equal(String(check(line, raw(t.root), raw(t.network)).total), t.total, name);
}
for (const [name, line] of Object.entries(t.bad)) {
  assert.throws(() => check(line, raw(t.root), raw(t.network)), undefined, name);
}
console.log(`${Object.keys(t.good).length} accepted, ${Object.keys(t.bad).length} refused`);
