// Continues a prompt greedily with OpenAI's own client: node ask.mjs BASE_URL PROMPT TOKENS; prints the text as JSON.
import OpenAI from "openai";

const [baseURL, prompt, count] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 3 });
const [{ id }] = (await client.models.list()).data;
const answer = await client.completions.create({ model: id, prompt, max_tokens: Number(count), temperature: 0 });
console.log(JSON.stringify({ text: answer.choices[0].text, finish: answer.choices[0].finish_reason }));
