// Holds the front matter of model cards against the type of it that Hugging Face's client declares, and prints what is wrong
// as JSON, a list for each: node card.mjs README.md...
// The compiler of TypeScript checks the type, which has the licences; tasks and libraries are those of @huggingface/tasks.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ALL_MODEL_LIBRARY_KEYS, PIPELINE_TYPES_SET } from "@huggingface/tasks";
import ts from "typescript";
import { parse } from "yaml";

const files = process.argv.slice(2);
const cards = files.map((file) => parse(readFileSync(file, "utf8").split(/^---$/m)[1]));
const types = fileURLToPath(new URL("node_modules/@huggingface/hub/src/types/api/api-model", import.meta.url));

// typed gives what the compiler says of each card as a value of the type.
function typed() {
  const source = new Map(cards.map((card, i) =>
    [`/card${i}.ts`, `import type { ApiModelMetadata } from "${types}";\nexport const card: ApiModelMetadata = ${JSON.stringify(card)};\n`]));
  const options = { noEmit: true, strict: true, skipLibCheck: true, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler };
  const host = ts.createCompilerHost(options), { getSourceFile, fileExists, readFile } = host;
  host.fileExists = (name) => source.has(name) || fileExists(name);
  host.readFile = (name) => source.get(name) ?? readFile(name);
  host.getSourceFile = (name, version) => (source.has(name) ? ts.createSourceFile(name, source.get(name), version) : getSourceFile(name, version));
  const program = ts.createProgram([...source.keys()], options, host);
  return [...source.keys()].map((name) => {
    const file = program.getSourceFile(name);
    return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map((d) => ts.flattenDiagnosticMessageText(d.messageText, " "));
  });
}

const wrong = typed();
cards.forEach((card, i) => {
  const say = (holds, text) => holds || wrong[i].push(text);
  say(PIPELINE_TYPES_SET.has(card.pipeline_tag), `pipeline_tag ${card.pipeline_tag}`);
  say(ALL_MODEL_LIBRARY_KEYS.includes(card.library_name), `library_name ${card.library_name}`);
  for (const model of card["model-index"] ?? []) {
    for (const { task, dataset } of model.results) {
      say(PIPELINE_TYPES_SET.has(task.type), `task ${task.type}`);
      say(dataset, "a result without a data set");
    }
  }
  say(!card.base_model || /^[\w.-]{1,96}\/[\w.-]{1,96}$/.test(card.base_model), `base_model ${card.base_model}`);
  say((card.license === "other") === !!card.license_name, `license ${card.license} with the name ${card.license_name}`);
});
console.log(JSON.stringify(wrong));
