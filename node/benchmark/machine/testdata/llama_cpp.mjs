// Measures llama.cpp, through the npm package node-llama-cpp 3.22.1, on what `starling bench generate --gguf FILE` wrote:
//   node llama_cpp.mjs FILE THREADS PROMPT_TOKENS TOKENS REPEAT
// It reads a prompt and continues it greedily; the fastest repetition counts, the first is left out.
import {getLlama, LlamaLogLevel} from "node-llama-cpp";
const [file, threads, promptTokens, tokens, repeat] = process.argv.slice(2).map((x, i) => i ? Number(x) : x);
const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: threads});
const model = await llama.loadModel({modelPath: file});
let bestCpu = 0, best = 0, bestPrompt = 0;
for (let r = 0; r <= repeat; r++) {
    const context = await model.createContext({contextSize: model.trainContextSize, threads, flashAttention: false});
    const sequence = context.getSequence();
    const prompt = Array.from({length: promptTokens}, (_, i) => (i * 37 + 11) % 256);
    let begin = performance.now();
    await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(0, -1));
    const read = performance.now() - begin;
    let n = 0, cpu;
    begin = 0;
    for await (const _ of sequence.evaluate(prompt.slice(-1), {temperature: 0, yieldEogToken: true})) {
        if (n === 0) { begin = performance.now(); cpu = process.cpuUsage(); }
        if (n++ >= tokens) break;
    }
    const generated = performance.now() - begin; const u = process.cpuUsage(cpu); if (r > 0) bestCpu = Math.max(bestCpu, tokens / (u.user + u.system) * 1e6);
    if (r > 0) { best = Math.max(best, tokens / generated * 1000); bestPrompt = Math.max(bestPrompt, (promptTokens-1) / read * 1000); }
    await context.dispose();
}
console.log(JSON.stringify({tokens_per_second: best, prompt_tokens_per_second: bestPrompt, tokens_per_cpu_second: bestCpu, threads}));
process.exit(0);
