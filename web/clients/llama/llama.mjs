// Continues a prompt greedily with llama.cpp, by the npm package node-llama-cpp, and prints what it read and wrote as JSON:
//   node llama.mjs PROMPT TOKENS FILE.gguf...
import { getLlama, LlamaLogLevel } from "node-llama-cpp";

const [prompt, count, ...files] = process.argv.slice(2);
const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 1 });

async function continued(file) {
  const model = await llama.loadModel({ modelPath: file });
  const context = await model.createContext({ contextSize: model.trainContextSize, threads: 1, flashAttention: false });
  const read = model.tokenize(prompt, true);
  if (model.tokens.shouldPrependBosToken && read[0] !== model.tokens.bos) read.unshift(model.tokens.bos);
  const written = [];
  for await (const token of context.getSequence().evaluate(read, { temperature: 0 })) {
    if (written.push(token) >= Number(count)) break;
  }
  return { text: model.detokenize(written, false, read), template: model.fileInfo.metadata.tokenizer.chat_template };
}

const out = [];
for (const file of files) out.push(await continued(file));
console.log(JSON.stringify(out));
process.exit(0);
