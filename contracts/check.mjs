// Plays transactions that go-ethereum has executed in another EVM, and compares their ends and their gas; then ethers and
// viem claim on both chains. The argument is a file that contracts/clients_test.go writes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createBlock } from '@ethereumjs/block';
import { Hardfork, Mainnet, createCustomCommon } from '@ethereumjs/common';
import { createTx, createTxFromRLP } from '@ethereumjs/tx';
import { Account, createAddressFromString, hexToBytes, bytesToHex } from '@ethereumjs/util';
import { createVM, runTx } from '@ethereumjs/vm';
import { Contract, Interface, JsonRpcProvider, Wallet } from 'ethers';
import { createPublicClient, createWalletClient, decodeFunctionResult, encodeFunctionData, http, parseEventLogs } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';

const w = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const common = createCustomCommon({ chainId: w.chain, name: 'test' }, Mainnet, { hardfork: Hardfork.Osaka });
const vm = await createVM({ common });
for (const address of w.rich) {
  await vm.stateManager.putAccount(createAddressFromString(address), new Account(0n, 1000n * 10n ** 18n));
}
const block = createBlock({ header: { number: 1n, gasLimit: 60_000_000n, baseFeePerGas: 1n, timestamp: 1n } },
  { common, skipConsensusFormatValidation: true });
const run = (tx) => runTx(vm, { tx, block, skipHardForkValidation: true, skipBlockGasLimitValidation: true });

for (const t of w.transactions) {
  const { execResult, totalGasSpent } = await run(createTxFromRLP(hexToBytes(t.raw), { common }));
  assert.equal(execResult.exceptionError === undefined, t.ok, `${t.name}: ${execResult.exceptionError?.error}`);
  assert.equal(Number(totalGasSpent), t.gas, `the gas of ${t.name}`);
}

// One claim by each client on each chain: claims 2 to 5.
const rpc = new JsonRpcProvider(w.url);
const secret = '0x' + '06'.repeat(32);
const wallet = new Wallet(secret, rpc);
const payout = new Contract(w.contract, w.abi, wallet);
const owner = privateKeyToAccount(secret);
const chain = { id: w.chain, name: 'test', nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [w.url] } } };
const reader = createPublicClient({ chain, transport: http(w.url), pollingInterval: 50 });
const writer = createWalletClient({ account: owner, chain, transport: http(w.url) });

const [a, b, c, d] = w.claims.slice(2, 6);
const receipt = await (await payout.claim([a])).wait();
assert.equal(receipt.status, 1);
const events = receipt.logs.map((log) => payout.interface.parseLog(log)).filter((e) => e?.name === 'Claimed');
assert.equal(events.length, 1);
assert.equal(events[0].args.amount, BigInt(a.total));
assert.equal(await payout.claimed(a.account, a.token), BigInt(a.total));

const call = { address: w.contract, abi: w.abi, functionName: 'claim', args: [[b]] };
const hash = await writer.writeContract((await reader.simulateContract({ ...call, account: owner })).request);
const claimed = parseEventLogs({ abi: w.abi, logs: (await reader.waitForTransactionReceipt({ hash })).logs });
assert.equal(claimed.find((e) => e.eventName === 'Claimed').args.total, BigInt(b.total));
assert.equal(await reader.readContract({ ...call, functionName: 'claimed', args: [b.account, b.token] }), BigInt(b.total));
await assert.rejects(reader.simulateContract({ ...call, args: [[{ ...b, total: BigInt(b.total) + 1n }]], account: owner }),
  /Proof/);

const from = createAddressFromString(owner.address);
const asked = (data) => vm.evm.runCall({ to: createAddressFromString(w.contract), caller: from, data: hexToBytes(data) });
for (const [claim, data] of [[c, new Interface(w.abi).encodeFunctionData('claim', [[c]])],
  [d, encodeFunctionData({ abi: w.abi, functionName: 'claim', args: [[d]] })]]) {
  const { nonce } = await vm.stateManager.getAccount(from);
  const tx = createTx({ type: 2, chainId: w.chain, nonce, maxFeePerGas: 10n ** 9n, gasLimit: 1_000_000n, to: w.contract, data },
    { common }).sign(hexToBytes(secret));
  const { execResult } = await run(tx);
  assert.equal(execResult.exceptionError, undefined);
  const args = [claim.account, claim.token];
  const answer = await asked(encodeFunctionData({ abi: w.abi, functionName: 'claimed', args }));
  assert.equal(decodeFunctionResult({ abi: w.abi, functionName: 'claimed', data: bytesToHex(answer.execResult.returnValue) }),
    BigInt(claim.total));
}
console.log(`${w.transactions.length} transactions`);
rpc.destroy();
