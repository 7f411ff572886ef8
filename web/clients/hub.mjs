// Reads a model from the hub at the URL given with Hugging Face's own client, and prints what it got as JSON.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { downloadFile, fileDownloadInfo, fileExists, listFiles, modelInfo, snapshotDownload } from "@huggingface/hub";

const [hubUrl, repo, cacheDir] = process.argv.slice(2);
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const out = { files: [], digests: {}, snapshot: {} };

out.info = await modelInfo({ name: repo, hubUrl, additionalFields: ["sha"] });
for await (const f of listFiles({ repo, hubUrl, recursive: true })) out.files.push({ type: f.type, path: f.path, size: f.size, lfs: f.lfs?.oid });
for (const f of out.files.filter((f) => f.type === "file")) {
  const blob = await downloadFile({ repo, hubUrl, path: f.path });
  out.digests[f.path] = sha256(Buffer.from(await blob.arrayBuffer()));
}
const large = await fileDownloadInfo({ repo, hubUrl, path: "model.safetensors" });
out.large = { size: large.size, etag: large.etag };
const part = (await downloadFile({ repo, hubUrl, path: "model.safetensors" })).slice(8, 24);
out.part = Buffer.from(await part.arrayBuffer()).toString("hex");
out.missing = await fileExists({ repo, hubUrl, path: "none.json" });
out.none = await downloadFile({ repo, hubUrl, path: "none.json" });
const dir = await snapshotDownload({ repo, hubUrl, cacheDir });
for (const f of Object.keys(out.digests)) out.snapshot[f] = sha256(readFileSync(join(dir, f)));
try {
  await modelInfo({ name: "starling/none", hubUrl });
} catch (e) {
  out.unknown = { kind: e.constructor.name, status: e.statusCode };
}
process.stdout.write("\n" + JSON.stringify(out)); // after what the client prints itself
