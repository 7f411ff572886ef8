// Writes small tokenizer.json files with the parts that published ones have, and the ids that Hugging Face's own library,
// the npm package tokenizers, gives to lines of text:
//   node tokenizers.mjs make FOLDER            writes NAME.json, the same each time
//   node tokenizers.mjs encode FOLDER < LINES  prints {NAME: [digest of the ids of a line, ...]}; LINES is a JSON list of texts
// A digest is FNV-1a of the ids, as 32 bits in little endian.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const text = `The cat sat on the mat, the hat that the cat had sat on; it's theirs, isn't it? They've 12 of 345 and 6789.
a aa the then there these other another weather whether together    four  spaces\tand tabs. def f(x): return x + 1 // done
Der Fuchs springt über den Zaun. Le garçon a mangé une pêche à côté. El niño comió. Żółw i ćma. Þórður.
Мама мыла раму, и мир был тих. Η γάτα κάθεται στο χαλί. שלום לכולם. مرحبا بالعالم. नमस्ते दुनिया। สวัสดีชาวโลก
日本語の文章です。東京は大きい。中文文本在这里,你好世界。한국어 문장입니다. 😀 👩‍🚀 — “quotes” … £5 €6 ½ ² Ⅷ
`;
const special = (id, content, more = {}) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...more });
const symbols = (() => { // of GPT-2: a printable character for every byte
  const out = [];
  let next = 256;
  for (let b = 0; b < 256; b++) out.push(String.fromCodePoint(b <= 32 || (b >= 127 && b <= 160) || b === 173 ? next++ : b));
  return out;
})();
const toSymbols = (word) => [...Buffer.from(word, "utf8")].map((b) => symbols[b]).join("");

// learn makes merges of words of symbols, the most frequent pair first, ties by text.
function learn(words, count) {
  const list = words.map((w) => [...w]);
  const merges = [];
  while (merges.length < count) {
    const pairs = new Map();
    for (const w of list) for (let i = 0; i + 1 < w.length; i++) {
      const key = w[i] + "\u0000" + w[i + 1];
      pairs.set(key, (pairs.get(key) ?? 0) + 1);
    }
    const [best] = [...pairs].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    if (!best) break;
    const [left, right] = best[0].split("\u0000");
    merges.push([left, right]);
    for (const w of list) for (let i = 0; i + 1 < w.length; i++) if (w[i] === left && w[i + 1] === right) w.splice(i, 2, left + right);
  }
  return merges;
}

const file = (parts) => ({
  version: "1.0", truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null,
  decoder: null, ...parts,
});
const bpe = (vocab, merges, more) => ({
  type: "BPE", dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: false,
  byte_fallback: false, ignore_merges: false, vocab, merges: merges.map((m) => m.join(" ")), ...more,
});
const numbered = (tokens) => Object.fromEntries([...new Set(tokens)].map((t, i) => [t, i]));

const level = (more = {}) => ({ type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true, ...more });
const regex = (Regex, more = {}) => ({ type: "Split", pattern: { Regex }, behavior: "Isolated", invert: false, ...more });
const sequence = (...pretokenizers) => ({ type: "Sequence", pretokenizers });

// byBytes is byte-level BPE whose words a pre-tokenizer cuts.
function byBytes(pre_tokenizer, { ends = ["<|endoftext|>"], ignore = false, ...more } = {}) {
  const words = text.match(/ ?[\p{L}]+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+/gu).map(toSymbols);
  const merges = learn(words, 400);
  const vocab = numbered([...symbols, ...merges.map((m) => m.join(""))]);
  const n = Object.keys(vocab).length;
  return file({
    added_tokens: ends.map((e, i) => special(n + i, e)), pre_tokenizer, decoder: level({ add_prefix_space: true }),
    model: bpe(vocab, merges, { ignore_merges: ignore }), ...more,
  });
}

// byCharacters is BPE over characters with spaces as ▁ and a fallback to bytes.
function byCharacters(more, { cut = /\u2581+|\u2581?[^\u2581]+/gu, extra = [] } = {}) {
  const words = text.replaceAll("\n", " ").replaceAll(" ", "▁").match(cut);
  const merges = learn(words, 400);
  const bytes = Array.from({ length: 256 }, (_, b) => `<0x${b.toString(16).toUpperCase().padStart(2, "0")}>`);
  const characters = [...new Set([...text.replace(/[^\x20-\x7eÀ-ÿ▁]/gu, "") + "▁"])].map((c) => (c === " " ? "▁" : c));
  const parts = merges.flatMap(([a, b]) => [...a, ...b]);
  // In the order of a SentencePiece vocabulary: each token by its first merge, and only merges to it from tokens that are known.
  const vocab = numbered(["<unk>", "<s>", "</s>", ...bytes, ...merges.map((m) => m.join("")), ...characters, ...parts, ...extra]);
  const all = [];
  for (const token of new Set(merges.map((m) => m.join("")))) {
    const runes = [...token];
    for (let i = 1; i < runes.length; i++) {
      const [a, b] = [runes.slice(0, i).join(""), runes.slice(i).join("")];
      if (a in vocab && b in vocab) all.push([a, b]);
    }
  }
  return file({
    added_tokens: [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")],
    post_processor: {
      type: "TemplateProcessing", single: [{ SpecialToken: { id: "<s>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
      pair: [{ Sequence: { id: "A", type_id: 0 } }, { Sequence: { id: "B", type_id: 1 } }],
      special_tokens: { "<s>": { id: "<s>", ids: [1], tokens: ["<s>"] } },
    },
    decoder: { type: "Sequence", decoders: [
      { type: "Replace", pattern: { String: "▁" }, content: " " }, { type: "ByteFallback" }, { type: "Fuse" },
      { type: "Strip", content: " ", start: 1, stop: 0 },
    ] },
    model: bpe(vocab, all, { unk_token: "<unk>", fuse_unk: true, byte_fallback: true }), ...more,
  });
}

function pieces(words) { // substrings of words with their frequencies
  const counts = new Map();
  for (const w of words) {
    const runes = [...w];
    for (let i = 0; i < runes.length; i++) for (let j = i + 1; j <= Math.min(runes.length, i + 6); j++) {
      const p = runes.slice(i, j).join("");
      counts.set(p, (counts.get(p) ?? 0) + 1);
    }
  }
  return [...counts].filter(([p, n]) => n > 1 || [...p].length === 1).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 700);
}

function unigram(more, before = []) {
  const list = pieces(text.split(/\s+/).map((w) => "▁" + w));
  const total = list.reduce((sum, [, n]) => sum + n, 0);
  const vocab = [["<pad>", 0], ["</s>", 0], ["<unk>", 0], ...before, ...list.map(([p, n]) => [p, Math.round(Math.log(n / total) * 1e6) / 1e6])];
  return file({
    added_tokens: [special(0, "<pad>"), special(1, "</s>"), special(2, "<unk>")],
    pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true },
    decoder: { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true },
    model: { type: "Unigram", unk_id: 2, vocab, byte_fallback: before.length > 0 }, ...more,
  });
}

function wordPiece(lowercase) {
  const words = (lowercase ? text.normalize("NFD").replace(/\p{Mn}/gu, "").toLowerCase() : text).split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const tokens = new Set(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]);
  for (const [p] of pieces(words)) { tokens.add(p); tokens.add("##" + p); }
  for (const c of text.replace(/[\s\p{L}\p{N}\p{M}]/gu, "")) tokens.add(c);
  const list = [...tokens];
  return file({
    added_tokens: list.slice(0, 5).map((t, i) => special(i, t)),
    normalizer: { type: "BertNormalizer", clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase },
    pre_tokenizer: { type: "BertPreTokenizer" },
    post_processor: { type: "BertProcessing", sep: ["[SEP]", 3], cls: ["[CLS]", 2] },
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: { type: "WordPiece", unk_token: "[UNK]", continuing_subword_prefix: "##", max_input_chars_per_word: 100, vocab: numbered(list) },
  });
}

const noRegex = level({ use_regex: false });
const llama3 = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const underscore = { type: "Replace", pattern: { String: " " }, content: "▁" };
const bytePieces = Array.from({ length: 256 }, (_, b) => [`<0x${b.toString(16).toUpperCase().padStart(2, "0")}>`, -20]);
const files = {
  "gpt2": () => byBytes(level()),
  "llama3": () => byBytes(sequence(regex(llama3), noRegex), { ends: ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"], ignore: true }),
  "qwen2": () => byBytes(sequence(regex(llama3.replace("{1,3}", "")), noRegex), { normalizer: { type: "NFC" }, ends: ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] }),
  "smollm": () => byBytes(sequence({ type: "Digits", individual_digits: true }, level())),
  "digits-together": () => byBytes(sequence({ type: "Digits", individual_digits: false }, level({ add_prefix_space: true }))),
  "pythia": () => byBytes(level(), { normalizer: { type: "NFC" } }),
  "tekken": () => byBytes(sequence(regex("[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"), noRegex), { ends: ["<s>", "</s>"] }),
  "deepseek-coder": () => byBytes(sequence(regex("[\\r\\n]"), regex("\\s?\\p{L}+"), regex("\\s?\\p{P}+"), regex("[一-龥ࠀ-一가-퟿]+"), { type: "Digits", individual_digits: true }, noRegex)),
  "phi4": () => byBytes(sequence(regex(llama3, { behavior: "Removed", invert: true }), noRegex)),
  "llama2": () => byCharacters({ normalizer: { type: "Sequence", normalizers: [{ type: "Prepend", prepend: "▁" }, underscore] } }),
  "mistral-v0.3": () => byCharacters({ pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: "first", split: false } }),
  "metaspace-legacy": () => byCharacters({ pre_tokenizer: { type: "Metaspace", replacement: "▁", add_prefix_space: true } }),
  "gemma": () => byCharacters({ normalizer: underscore, pre_tokenizer: { type: "Split", pattern: { String: " " }, behavior: "MergedWithPrevious", invert: false } }),
  "unigram": () => unigram({}),
  "unigram-bytes": () => unigram({ normalizer: { type: "Sequence", normalizers: [{ type: "NFKC" }, { type: "Strip", strip_left: true, strip_right: true }, { type: "Replace", pattern: { Regex: " {2,}" }, content: " " }] } }, bytePieces),
  "wordpiece-uncased": () => wordPiece(true),
  "wordpiece-cased": () => wordPiece(false),
};

function digest(ids) {
  let h = 0x811c9dc5;
  for (const id of ids) for (let s = 0; s < 32; s += 8) h = Math.imul(h ^ ((id >>> s) & 255), 0x01000193) >>> 0;
  return h;
}

const [act, folder, library] = process.argv.slice(2);
if (act === "make") {
  for (const [name, make] of Object.entries(files)) fs.writeFileSync(path.join(folder, name + ".json"), JSON.stringify(make()) + "\n");
} else {
  const { Tokenizer } = createRequire(library ?? import.meta.url)("tokenizers");
  const lines = JSON.parse(fs.readFileSync(0, "utf8"));
  const out = {};
  for (const name of Object.keys(files)) {
    const t = Tokenizer.fromFile(path.join(folder, name + ".json"));
    out[name] = [];
    for (const line of lines) out[name].push(digest((await t.encode(line, null, { addSpecialTokens: false })).getIds()));
  }
  console.log(JSON.stringify(out));
}
