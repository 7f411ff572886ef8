// Tunes a model with OpenAI's own client and talks to it, and prints what it heard as JSON. The job is one that was submitted
// with the same Idempotency-Key before, so that nothing is trained for it.
import OpenAI, { APIError, toFile } from "openai";

const [baseURL, text, idempotencyKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const out = { errors: {} };

const file = await client.files.create({ file: await toFile(Buffer.from(text), "again.jsonl"), purpose: "fine-tune" });
out.file = await client.files.retrieve(file.id);
out.content = await (await client.files.content(file.id)).text();
out.files = [];
for await (const f of client.files.list({ limit: 1, purpose: "fine-tune" })) out.files.push(f.id);

const jobs = client.fineTuning.jobs;
const job = await jobs.create(
  { model: "tiny", training_file: file.id, suffix: "birds", metadata: { project: "wings" }, integrations: null, hyperparameters: { n_epochs: 1, batch_size: 4, learning_rate_multiplier: "auto" } },
  { headers: { "Idempotency-Key": idempotencyKey } },
);
out.job = await jobs.retrieve(job.id);
out.jobs = [];
for await (const j of jobs.list({ limit: 1 })) out.jobs.push(j.id);
out.events = [];
for await (const e of jobs.listEvents(job.id, { limit: 1 })) out.events.push(e.message);
out.checkpoints = [];
for await (const c of jobs.checkpoints.list(job.id, { limit: 1 })) out.checkpoints.push(c);

out.results = await (await client.files.content(out.job.result_files[0])).text();

const model = job.fine_tuned_model;
out.models = [];
for await (const m of client.models.list()) out.models.push(m.id);
out.model = (await client.models.retrieve(model)).id;
const options = { model, seed: 1, max_completion_tokens: 4, messages: [{ role: "user", content: "What?" }] };
out.said = (await client.chat.completions.create(options)).choices[0].message.content;
out.streamed = (await client.chat.completions.stream(options).finalChatCompletion()).choices[0].message.content;

async function failure(name, call) {
  try {
    await call();
  } catch (e) {
    if (!(e instanceof APIError)) throw e;
    out.errors[name] = { kind: e.constructor.name, status: e.status, code: e.code, param: e.param };
  }
}
await failure("cancel", () => jobs.cancel(job.id));
await failure("pause", () => jobs.pause(job.id));
await failure("embeddings", () => client.embeddings.create({ model, input: "a" }));
await failure("moderations", () => client.moderations.create({ input: "a" }));
await failure("responses", () => client.responses.create({ model, input: "a" }));
await failure("delete", () => client.models.delete("tiny"));
await failure("unnamed", () => client.completions.create({ prompt: "a" }));
const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA" } };
await failure("image", () => client.chat.completions.create({ model, messages: [{ role: "user", content: [{ type: "text", text: "What is it?" }, image] }] }));
await failure("wandb", () => jobs.create({ model: "tiny", training_file: file.id, integrations: [{ type: "wandb", wandb: { project: "a" } }] }));
await failure("line", async () => client.files.create({ file: await toFile(Buffer.from(text + "{"), "bad.jsonl"), purpose: "fine-tune" }));
await failure("model", () => jobs.create({ model: "gpt-4o-mini", training_file: file.id }));
out.deleted = await client.files.delete(file.id);
await failure("file", () => client.files.retrieve(file.id));

console.log(JSON.stringify(out));
