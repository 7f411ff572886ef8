// The versions of CosmJS that dApps have, on a chain of Starling: node versions.mjs RPC MNEMONIC prints, as JSON, what each version
// fails with, "" if it reads a new account and signs for it.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { DirectSecp256k1HdWallet } from "@cosmjs/proto-signing";
import { GasPrice, SigningStargateClient } from "@cosmjs/stargate";

const denom = "uzen";
export const versions = ["0.32", "0.36", "0.38", "0.39"];

// packages are the three of a version, of which the newest has the ordinary names.
async function packages(version) {
  const name = (plain, alias) => (version === "0.39" ? `@cosmjs/${plain}` : `${alias}-${version.replace(".", "")}`);
  return Object.assign({}, ...await Promise.all(
    [name("stargate", "stargate"), name("tendermint-rpc", "comet"), name("proto-signing", "signing")].map((p) => import(p))));
}

// signs has a version open an account that another pays, read it, and send coins back. Versions before 0.38 take CometBFT 0.39 for
// Tendermint 0.34, unless they are told what it is; those before 0.39 keep account numbers as doubles.
export async function signs(version, rpc, payer, from) {
  const { SigningStargateClient: Client, GasPrice: Price, Comet38Client: Comet, DirectSecp256k1HdWallet: Wallet } = await packages(version);
  const wallet = await Wallet.generate(24, { prefix: "starling" });
  const [{ address }] = await wallet.getAccounts();
  assert.equal((await payer.sendTokens(from, address, [{ denom, amount: "10" }], "auto")).code, 0);
  const options = { gasPrice: Price.fromString(`0${denom}`), broadcastPollIntervalMs: 100 };
  const client = version === "0.32" || version === "0.36"
    ? await Client.createWithSigner(await Comet.connect(rpc), wallet, options)
    : await Client.connectWithSigner(rpc, wallet, options);
  const account = await client.getAccount(address);
  assert.ok(Number.isSafeInteger(Number(account.accountNumber)), `CosmJS ${version}: ${account.accountNumber}`);
  const back = await client.sendTokens(address, from, [{ denom, amount: "4" }], "auto");
  assert.equal(back.code, 0, `CosmJS ${version}: ${back.rawLog}`);
  assert.equal((await client.getBalance(address, denom)).amount, "6");
  client.disconnect();
}

async function main(rpc, mnemonic) {
  const wallet = await DirectSecp256k1HdWallet.fromMnemonic(mnemonic, { prefix: "starling" });
  const [{ address }] = await wallet.getAccounts();
  const payer = await SigningStargateClient.connectWithSigner(rpc, wallet, {
    gasPrice: GasPrice.fromString(`0${denom}`), broadcastPollIntervalMs: 100,
  });
  const failed = {};
  for (const version of versions) failed[version] = await signs(version, rpc, payer, address).then(() => "", (e) => e.message);
  console.log(JSON.stringify(failed));
  process.exit(0); // connections that are kept alive do not keep the program
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main(...process.argv.slice(2));
