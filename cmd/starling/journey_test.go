package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/internal/torchtest"
)

// publishedFolder is a small Llama 3 as the Hub has it: keys of other programs in config.json, several tokens that end
// a text, positions that are scaled, a tokenizer that begins texts, a chat template.
func publishedFolder(t *testing.T) (dir string, tok *tokenizer.Tokenizer) {
	t.Helper()
	dir = t.TempDir()
	raw, err := os.ReadFile("../../node/compat/tokenizers/llama3.json")
	if err != nil {
		t.Fatal(err)
	}
	if tok, err = tokenizer.Parse(raw); err != nil {
		t.Fatal(err)
	}
	vocab := tok.VocabSize()
	keys := map[string]any{"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
		"intermediate_size": 128, "max_position_embeddings": 128, "vocab_size": vocab, "rope_theta": 500000.0,
		"rms_norm_eps": 1e-5,
		"bos_token_id": vocab - 3, "eos_token_id": []any{vocab - 2, vocab - 1}, "tie_word_embeddings": true,
		"initializer_range": 0.1}
	c, err := architecture.Parse(architecture.Llama, keys)
	if err != nil {
		t.Fatal(err)
	}
	files, err := (&folder.Model{Config: c, Tensors: c.Init(1)}).Files(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		var out bytes.Buffer
		if err := f.Write(&out); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, f.Name), out.Bytes())
	}
	for key, value := range map[string]any{"model_type": "llama", "architectures": []string{"LlamaForCausalLM"},
		"is_llama_config":  true,
		"rope_interleaved": false, "unsloth_fixed": true, "pretraining_tp": 1, "torch_dtype": "float32",
		"hidden_act": "silu"} {
		keys[key] = value
	}
	for name, value := range map[string]any{
		"config.json": keys,
		"generation_config.json": map[string]any{"eos_token_id": keys["eos_token_id"], "bos_token_id": vocab - 3,
			"temperature": 0.6},
		"tokenizer_config.json": map[string]any{"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>",
			"padding_side":    "left",
			"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": "{{ bos_token }}{% for m in messages %}" +
				"{{ m['role'] + ': ' + m['content'] + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}{{ 'assistant: ' " +
				"}}{% endif %}"},
	} {
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), text)
	}
	// The tokenizer puts the beginning before a text.
	begin := `{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 0}}, ` +
		`{"Sequence": {"id": "A", "type_id": 0}}],
		"pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
		"special_tokens": {"<|begin_of_text|>": {"id": "<|begin_of_text|>", "ids": [` + strconv.Itoa(
		vocab-3,
	) +
		`], "tokens": ["<|begin_of_text|>"]}}}`
	text := strings.Replace(string(raw), `"post_processor":null`, `"post_processor":`+begin, 1)
	writeFile(t, filepath.Join(dir, "tokenizer.json"), []byte(text))
	if tok, err = tokenizer.Parse([]byte(text)); err != nil || len(tok.Begin()) != 1 {
		t.Fatal(err)
	}
	return dir, tok
}

// writeChats makes a file of conversations.
func writeChats(t *testing.T, path string) {
	t.Helper()
	var b strings.Builder
	for i := range 40 {
		animal, place := []string{"cat", "hat", "rat", "bat"}[i%4], []string{"mat", "wall", "roof", "road"}[i%4]
		fmt.Fprintf(&b, `{"messages": [{"role": "user", "content": "Where is the %s?"}, {"role": "assistant", "content": `+
			`"The %s sat on the %s."}]}`+"\n", animal, animal, place)
	}
	writeFile(t, path, []byte(b.String()))
}

// TestPublishedModelIsTunedAndUsed takes a folder as the Hub has it, tunes it on a file of conversations on a network
// of processes, and asks the model in PyTorch, llama.cpp, OpenAI's client and `starling model generate`: all write the
// same text.
func TestPublishedModelIsTunedAndUsed(t *testing.T) {
	onlyLong(t)
	base, tok := publishedFolder(t)
	dir, port := t.TempDir(), porttest.Ports(t, 40)
	writeChats(t, filepath.Join(dir, "chats.jsonl"))
	job := filepath.Join(dir, "job.yaml")
	writeFile(t, job, []byte("apiVersion: starling/v1\nkind: TrainingJob\nname: tuned\nseed: 7\nmodel: {base_model: "+
		base+"}\n"+
		"datasets: [{path: chats.jsonl, format: jsonl, field: messages}]\nsequence_len: 48\nval_set_size: 0.05\n"+
		"training: {max_steps: 40, global_batch_size: 8, learning_rate: 5.0e-3, warmup_steps: 4}\n"+
		"strategy: {method: diloco, sync_steps: 10, workers: 2}\nbudget: {max_cost: 25}\n"+
		"checkpoint: {every_steps: 10}\neval: {every_steps: 40}\n"))
	network, out := filepath.Join(dir, "net"), filepath.Join(dir, "out")
	up(t, network, "--validators", "1", "--workers", "2", "--block-time", "200ms", "--port", fmt.Sprint(port))
	code, _, stderr := starling(t, "train", job, "--dir", out, "-o", "json", "--network",
		fmt.Sprintf("http://127.0.0.1:%d", port+1),
		"--home", filepath.Join(network, "consumer"))
	if code != 0 {
		t.Fatalf("train: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := starling(t, "dev", "down", network); code != 0 {
		t.Errorf("dev down: %s", stderr)
	}
	leftWhole(t, out)

	const tokens = 40
	prompt := "<|begin_of_text|>user: Where is the cat?<|eot_id|>assistant: "
	code, stdout, stderr := starling(t, "model", "generate", out, "--prompt", prompt, "--tokens",
		fmt.Sprint(tokens), "--temperature", "0", "-o", "json")
	var generated struct{ Text string }
	if err := json.Unmarshal([]byte(stdout), &generated); code != 0 || err != nil {
		t.Fatalf("generate: exit %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if !strings.Contains(generated.Text, " sat on the mat.") {
		t.Errorf("the model did not learn its conversations: %q", generated.Text)
	}
	same := func(name string, write func(t *testing.T) string) {
		t.Run(name, func(t *testing.T) {
			if text := write(t); firstLine(text) != firstLine(generated.Text) {
				t.Errorf("%q, and starling model generate %q", text, generated.Text)
			}
		})
	}
	same("PyTorch", func(t *testing.T) string { return inPyTorch(t, out, tok, prompt, tokens) })
	var files []string
	for _, kind := range []string{"f32", "f16", "q8_0", "q4_0"} {
		files = append(files, filepath.Join(dir, kind+".gguf"))
		does(t, &exportedModel{}, "model", "export", out, "--format", "gguf", "--type", kind, "--file", files[len(files)-1])
	}
	same("llama.cpp", func(t *testing.T) string { return inLlama(t, files, prompt, tokens)[0] })
	same("OpenAI's client", func(t *testing.T) string { return inOpenAI(t, out, prompt, tokens) })
}

// firstLine is a text up to the token that ends it, whether a program writes that out or not.
func firstLine(text string) string {
	text, _, _ = strings.Cut(text, "<|e")
	return text
}

// leftWhole looks at what a tuned model leaves for other programs.
func leftWhole(t *testing.T, out string) {
	t.Helper()
	read := func(name string) (keys map[string]any) {
		raw, err := os.ReadFile(filepath.Join(out, name))
		if err != nil || json.Unmarshal(raw, &keys) != nil {
			t.Fatalf("%s: %v\n%s", name, err, raw)
		}
		return keys
	}
	config, generation, tokens := read("config.json"), read("generation_config.json"), read("tokenizer_config.json")
	for name, keys := range map[string]map[string]any{"config.json": config, "generation_config.json": generation} {
		if ends, _ := keys["eos_token_id"].([]any); len(ends) != 2 {
			t.Errorf("%s: eos_token_id is %v", name, keys["eos_token_id"])
		}
	}
	if generation["temperature"] != 0.6 || tokens["bos_token"] != "<|begin_of_text|>" ||
		tokens["eos_token"] != "<|eot_id|>" ||
		tokens["padding_side"] != "left" || tokens["chat_template"] == nil {
		t.Errorf("%v, %v", generation, tokens)
	}
}

// inPyTorch is the greedy text of plain PyTorch.
func inPyTorch(t *testing.T, dir string, tok *tokenizer.Tokenizer, prompt string, n int) string {
	t.Helper()
	python := torchtest.Python(t)
	inputs.Of(t, "../../node/compat/families.py")
	args := []string{"../../node/compat/families.py", "--continue", dir, fmt.Sprint(n)}
	for _, id := range tok.EncodeText(prompt) {
		args = append(args, fmt.Sprint(id))
	}
	raw, err := exec.Command(python, args...).Output()
	var ids []uint32
	if err != nil || json.Unmarshal(raw, &ids) != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return tok.Decode(ids)
}

// nodeClient runs a program in a folder of npm packages, one of which is what it needs.
func nodeClient(t *testing.T, answer any, dir, needs string, args ...string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "node_modules", needs)); err != nil {
		t.Skipf("the npm package %s is not installed: cd %s && npm ci --ignore-scripts --omit=optional", needs, dir)
	}
	inputs.Of(t, filepath.Join(dir, args[0]))
	c := exec.Command("node", args...)
	c.Dir = dir
	var errs bytes.Buffer
	c.Stderr = &errs
	raw, err := c.Output()
	if err != nil || json.Unmarshal(raw, answer) != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, raw, errs.String())
	}
}

// inLlama is the greedy text of llama.cpp for each of the files.
func inLlama(t *testing.T, files []string, prompt string, n int) (texts []string) {
	t.Helper()
	var answers []struct{ Text, Template string }
	nodeClient(t, &answers, "../../web/clients/llama", "@node-llama-cpp/linux-x64", append([]string{"llama.mjs",
		prompt, fmt.Sprint(n)}, files...)...)
	for i, a := range answers {
		if texts = append(texts, a.Text); !strings.Contains(a.Template, "assistant: ") {
			t.Errorf("%s has the template %q", files[i], a.Template)
		}
	}
	if len(texts) != len(files) {
		t.Fatalf("%d texts of %d files", len(texts), len(files))
	}
	return texts
}

// inOpenAI is the greedy text that OpenAI's client hears from `starling model serve`.
func inOpenAI(t *testing.T, dir, prompt string, n int) string {
	t.Helper()
	serve := command(t, "model", "serve", dir, "--listen", "127.0.0.1:0")
	pipe, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serve.Process.Signal(syscall.SIGTERM); _ = serve.Wait() })
	go func() { _, _ = bufio.NewReader(pipe).WriteTo(os.Stderr) }()
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/v1`)
	for s := bufio.NewScanner(out); s.Scan(); {
		if url := address.FindString(s.Text()); url != "" {
			var answer struct{ Text string }
			nodeClient(t, &answer, "../../web/clients", "openai", "ask.mjs", url, prompt, fmt.Sprint(n))
			return answer.Text
		}
	}
	t.Fatal("the server did not start")
	return ""
}
