// Talks to the server at the base URL given with OpenAI's own client, and prints what it heard as JSON.
import OpenAI, { APIError } from "openai";

const [baseURL, apiKey, prompt] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const out = { models: [], errors: {} };

for await (const model of client.models.list()) out.models.push(model.id);
out.model = (await client.models.retrieve(out.models[1])).id;

const options = { model: out.models[0], max_tokens: 12, temperature: 0.7, seed: 3 };
out.completion = await client.completions.create({ ...options, prompt, logprobs: 2 });

let streamed = "";
for await (const part of await client.completions.create({ ...options, prompt, stream: true })) streamed += part.choices[0].text;
out.streamed = streamed;

const messages = [{ role: "system", content: "Be brief." }, { role: "user", content: "Hi" }];
out.chat = await client.chat.completions.create({ ...options, messages, n: 2 });
out.pieces = [];
const stream = await client.chat.completions.create({ ...options, messages, stream: true, stream_options: { include_usage: true } });
for await (const part of stream) out.pieces.push(part);
out.final = (await client.chat.completions.stream({ ...options, messages }).finalChatCompletion()).choices[0].message.content;
out.tuned = (await client.chat.completions.create({ ...options, model: out.models[1], messages })).choices[0].message.content;

async function failure(name, call) {
  try {
    await call();
  } catch (e) {
    if (!(e instanceof APIError)) throw e;
    out.errors[name] = { kind: e.constructor.name, status: e.status, code: e.code, param: e.param, type: e.type };
  }
}
await failure("model", () => client.completions.create({ ...options, model: "none", prompt }));
await failure("temperature", () => client.completions.create({ ...options, temperature: 9, prompt }));
await failure("long", () => client.completions.create({ ...options, prompt: prompt.repeat(1000) }));
await failure("token", () => new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 }).models.list());
console.log(JSON.stringify(out));
