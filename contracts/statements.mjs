// Has statement.mjs accept and refuse the statements of a file that contracts/statement_test.go writes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { check, known } from './statement.mjs';

const t = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const at = known(t.root, t.network, t.chain, t.contract, t.epoch);
for (const [name, line] of Object.entries(t.good)) {
  assert.equal(String(check(line, at).total), t.total, name);
}
for (const [name, line] of Object.entries(t.bad)) {
  assert.throws(() => check(line, at), undefined, name);
}
console.log(`${Object.keys(t.good).length} accepted, ${Object.keys(t.bad).length} refused`);
