// Uploads a folder to a repository of the hub at the URL given with Hugging Face's own client.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createRepo, uploadFiles } from "@huggingface/hub";

const [hubUrl, repo, accessToken, dir, ...names] = process.argv.slice(2);
await createRepo({ repo, hubUrl, accessToken, private: true });
await uploadFiles({
  repo, hubUrl, accessToken, commitTitle: "Upload tiny", useXet: false,
  files: names.map((path) => ({ path, content: new Blob([readFileSync(join(dir, path))]) })),
});
