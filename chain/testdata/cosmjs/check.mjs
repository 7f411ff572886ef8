// The ordinary JavaScript client of the ecosystem does on a chain of Starling what wallets and explorers do:
// node check.mjs RPC REST MNEMONIC. It ends with an error at the first thing that is not as the ecosystem expects.
import assert from "node:assert/strict";
import { DirectSecp256k1HdWallet } from "@cosmjs/proto-signing";
import {
  GasPrice, QueryClient, SigningStargateClient, setupBankExtension, setupDistributionExtension, setupGovExtension,
  setupIbcExtension, setupStakingExtension, setupTxExtension,
} from "@cosmjs/stargate";
import { Tendermint37Client } from "@cosmjs/tendermint-rpc";
import { signs, versions } from "./versions.mjs";

const [rpc, rest, mnemonic] = process.argv.slice(2);
const denom = "uzen";

const wallet = await DirectSecp256k1HdWallet.fromMnemonic(mnemonic, { prefix: "starling" });
const [{ address }] = await wallet.getAccounts();
const other = (await (await DirectSecp256k1HdWallet.generate(12, { prefix: "starling" })).getAccounts())[0].address;
const client = await SigningStargateClient.connectWithSigner(rpc, wallet, {
  gasPrice: GasPrice.fromString(`0${denom}`), broadcastPollIntervalMs: 100,
});
const comet = await Tendermint37Client.connect(rpc);
const query = QueryClient.withExtensions(
  comet, setupBankExtension, setupDistributionExtension, setupGovExtension, setupIbcExtension, setupStakingExtension, setupTxExtension,
);

// Accounts and balances.
assert.equal(await client.getChainId(), "test");
assert.ok((await client.getHeight()) > 0);
const account = await client.getAccount(address);
assert.equal(account.address, address);
const before = BigInt((await client.getBalance(address, denom)).amount);
assert.ok(before > 0n);
assert.equal((await query.bank.totalSupply()).supply[0].denom, denom);
assert.equal((await query.bank.denomMetadata(denom)).display, "zen");

// A transfer, seen by a subscription, by its hash and by a search.
const socket = await Tendermint37Client.connect(rpc.replace("http", "ws"));
const seen = new Promise((resolve, reject) => {
  socket.subscribeTx(`transfer.recipient='${other}'`).addListener({ next: resolve, error: reject });
});
const blocks = new Promise((resolve, reject) => socket.subscribeNewBlock().addListener({ next: resolve, error: reject }));
assert.ok((await blocks).header.height > 0);
const sent = await client.sendTokens(address, other, [{ denom, amount: "1234567" }], "auto", "hello");
assert.equal(sent.code, 0, sent.rawLog);
assert.equal((await client.getBalance(other, denom)).amount, "1234567");
assert.equal(BigInt((await client.getBalance(address, denom)).amount), before - 1234567n);
assert.equal((await seen).result.code, 0);
socket.disconnect();
assert.equal((await client.getTx(sent.transactionHash)).height, sent.height);
const found = await client.searchTx(`transfer.recipient='${other}'`);
assert.deepEqual(found.map((tx) => tx.hash), [sent.transactionHash]);

// Staking.
const { validators } = await query.staking.validators("BOND_STATUS_BONDED");
const validator = validators[0].operatorAddress;
assert.ok(validator.startsWith("starlingvaloper"));
const delegated = await client.delegateTokens(address, validator, { denom, amount: "1000000" }, "auto");
assert.equal(delegated.code, 0, delegated.rawLog);
assert.equal((await client.getDelegation(address, validator)).amount, "1000000");
const undelegated = await client.undelegateTokens(address, validator, { denom, amount: "400000" }, "auto");
assert.equal(undelegated.code, 0, undelegated.rawLog);
const reward = await client.withdrawRewards(address, validator, "auto");
assert.equal(reward.code, 0, reward.rawLog);

// Queries of other modules.
assert.ok((await query.distribution.communityPool()).pool);
assert.ok((await query.gov.params("voting")).votingParams.votingPeriod.seconds > 0n);
assert.deepEqual((await query.ibc.channel.allChannels()).channels, []);

// Every version that dApps have reads a new account and signs for it.
for (const version of versions) await signs(version, rpc, client, address);

// What is refused leaves everything as it was.
const rich = await client.getBalance(address, denom);
await assert.rejects(client.sendTokens(address, other, [{ denom, amount: "999999999999999" }], "auto"), /insufficient funds/);
assert.deepEqual(await client.getBalance(address, denom), rich);

// The same over HTTP with JSON.
async function get(path) {
  const response = await fetch(rest + path);
  const body = await response.text();
  assert.equal(response.status, 200, `${path}: ${body}`);
  return JSON.parse(body);
}
assert.deepEqual((await get(`/cosmos/bank/v1beta1/balances/${address}`)).balances, [rich]);
assert.equal((await get(`/cosmos/tx/v1beta1/txs/${sent.transactionHash}`)).tx_response.code, 0);
assert.equal((await get(`/cosmos/tx/v1beta1/txs?query=${encodeURIComponent(`transfer.recipient='${other}'`)}`)).tx_responses.length, 1);
assert.equal((await get("/cosmos/base/tendermint/v1beta1/node_info")).default_node_info.network, "test");
assert.equal((await get("/cosmos/base/tendermint/v1beta1/blocks/latest")).block.header.chain_id, "test");
assert.equal((await get(`/cosmos/auth/v1beta1/accounts/${address}`)).account.address, address);
assert.ok((await get("/cosmos/slashing/v1beta1/params")).params);
assert.ok((await get("/cosmos/gov/v1/params/deposit")).params);
assert.deepEqual((await get(`/cosmos/feegrant/v1beta1/allowances/${address}`)).allowances, []);
assert.equal((await get("/cosmos/upgrade/v1beta1/current_plan")).plan, null);
assert.equal((await get("/ibc/apps/transfer/v1/params")).params.send_enabled, true);
assert.ok(Number((await get("/cosmos/mint/v1beta1/inflation")).inflation) >= 0);
assert.ok(Number((await get("/cosmos/mint/v1beta1/annual_provisions")).annual_provisions) >= 0);
assert.equal((await get("/cosmos/mint/v1beta1/params")).params.mint_denom, denom);
assert.deepEqual((await get(`/cosmos/authz/v1beta1/grants/granter/${address}`)).grants, []);
assert.deepEqual((await get(`/cosmos/authz/v1beta1/grants/grantee/${address}`)).grants, []);
assert.deepEqual((await get("/starling/registry/v1/participants")).participants, []);
assert.deepEqual((await get("/starling/training/v1/runs")).jobs, []);
assert.ok((await get("/starling/beacon/v1/beacons/2")).value);
assert.equal((await fetch(`${rest}/starling/market/v1/orders/none`)).status, 404);

client.disconnect();
comet.disconnect();
process.exit(0); // connections that are kept alive do not keep the program
