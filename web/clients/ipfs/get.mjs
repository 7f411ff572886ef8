// Gets the folder of a CID from one node with Helia: node get.mjs MULTIADDR CID FOLDER
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { noise } from "@chainsafe/libp2p-noise";
import { yamux } from "@chainsafe/libp2p-yamux";
import { withBitswap } from "@helia/bitswap";
import { withLibp2pLight } from "@helia/libp2p";
import { unixfs } from "@helia/unixfs";
import { identify } from "@libp2p/identify";
import { tcp } from "@libp2p/tcp";
import { multiaddr } from "@multiformats/multiaddr";
import { createHeliaLight } from "helia";
import { CID } from "multiformats/cid";

const [from, cid, folder] = process.argv.slice(2);
const host = { transports: [tcp()], connectionEncrypters: [noise()], streamMuxers: [yamux()], services: { identify: identify() } };
const helia = withBitswap(withLibp2pLight(createHeliaLight(), host));
await helia.start();
await helia.libp2p.dial(multiaddr(from));
const fs = unixfs(helia);
mkdirSync(folder);
for await (const entry of fs.ls(CID.parse(cid))) {
  const parts = [];
  for await (const part of fs.cat(entry.cid)) parts.push(part);
  writeFileSync(join(folder, entry.name), Buffer.concat(parts));
}
process.exit(0); // whatever still keeps a connection
