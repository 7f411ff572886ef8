// Compiles each of the named source files into a JSON file with the interface and the code of its contracts, in the
// folder that comes first: `npm run compile` writes those of this folder.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import solc from 'solc';

const [folder, ...names] = process.argv.slice(2);
const output = JSON.parse(solc.compile(JSON.stringify({
  language: 'Solidity',
  sources: Object.fromEntries(names.map((name) => [name, { content: readFileSync(name, 'utf8') }])),
  settings: {
    optimizer: { enabled: true, runs: 10000 },
    viaIR: true,
    evmVersion: 'prague',
    metadata: { bytecodeHash: 'none', appendCBOR: false },
    outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
  },
})));
const wrong = (output.errors ?? []).filter((e) => e.severity !== 'info');
if (wrong.length > 0) {
  console.error(wrong.map((e) => e.formattedMessage).join('\n'));
  process.exit(1);
}
for (const [source, all] of Object.entries(output.contracts)) {
  const contracts = {};
  for (const [name, c] of Object.entries(all)) {
    if (c.evm.bytecode.object !== '') contracts[name] = { abi: c.abi, bytecode: '0x' + c.evm.bytecode.object };
  }
  const target = join(folder, source.replace(/\.sol$/, '.json'));
  mkdirSync(dirname(target), { recursive: true });
  const sha256 = createHash('sha256').update(readFileSync(source)).digest('hex');
  writeFileSync(target, JSON.stringify({ compiler: solc.version(), source: sha256, contracts }, null, 1) + '\n');
}
