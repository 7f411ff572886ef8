package prepare

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/data/chat"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/web/openai"
)

// leavesOf are the texts of a job, decoded where they are JSON.
func leavesOf(t *testing.T, j *job.Job) (texts, map[string]map[string]any) {
	t.Helper()
	b, err := New(j)
	if err != nil {
		t.Fatal(err)
	}
	leaves, err := b.Leaves()
	if err != nil {
		t.Fatal(err)
	}
	decoded := map[string]map[string]any{}
	for name, text := range leaves.files {
		if strings.HasSuffix(name, ".json") {
			var o map[string]any
			if err := json.Unmarshal(text, &o); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			decoded[name] = o
		}
	}
	return leaves, decoded
}

// A model that learnt from nothing says in every file that other programs read at which token its texts end.
func TestLeavesSayWhereTextsEnd(t *testing.T) {
	first := jobtest.Small(t)
	path := filepath.Join(first.Dir(), "learnt.yaml")
	source := strings.Replace(string(first.Source), "tokenizer: byte-level",
		"tokenizer: {train: {type: bpe, vocab_size: 300}}", 1)
	if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(j)
	if err != nil {
		t.Fatal(err)
	}
	end, ok := b.Tokenizer.EndOfText()
	if !ok {
		t.Fatal("the tokenizer ends no texts")
	}
	_, got := leavesOf(t, j)
	if got[FileConfig]["eos_token_id"] != float64(end) || got[fileGenerationConfig]["eos_token_id"] != float64(end) ||
		got[fileGenerationConfig]["pad_token_id"] != float64(end) {
		t.Errorf("%v, %v; want %d", got[FileConfig], got[fileGenerationConfig], end)
	}
	if c := got[fileTokenizerConfig]; c["eos_token"] != tokenizer.EndOfText || c["pad_token"] != tokenizer.EndOfText {
		t.Errorf("%v", c)
	}
}

// A fine-tune has the tokens, the settings and the template of its base, also where they stand in other files there.
func TestLeavesAreThoseOfTheBase(t *testing.T) {
	j := tuned(t, map[string]string{
		fileTokenizerConfig: `{"tokenizer_class": "GPT2Tokenizer", "padding_side": "left", "eos_token": {"content": ` +
			`"<|e|>", "lstrip": false}}`,
		fileGenerationConfig: `{"temperature": 0.6, "eos_token_id": [2, 3]}`,
		fileSpecialTokens:    `{"pad_token": "<|p|>", "eos_token": "<|other|>"}`,
		fileTemplate:         "{{ messages[0].content }}",
	}, "")
	leaves, got := leavesOf(t, j)
	config, generation, tokens := got[FileConfig], got[fileGenerationConfig], got[fileTokenizerConfig]
	ids := []any{2., 3.}
	if !reflect.DeepEqual(config["eos_token_id"], ids) || config["pad_token_id"] != 7. || config["bos_token_id"] != 1. {
		t.Errorf("config.json: %v", config)
	}
	if !reflect.DeepEqual(generation, map[string]any{"temperature": 0.6, "eos_token_id": ids, "pad_token_id": 7.,
		"bos_token_id": 1.}) {
		t.Errorf("generation_config.json: %v", generation)
	}
	if e, _ := tokens["eos_token"].(map[string]any); e["content"] != "<|e|>" || tokens["pad_token"] != "<|p|>" ||
		tokens["padding_side"] != "left" ||
		tokens["tokenizer_class"] != "GPT2Tokenizer" || tokens["chat_template"] != "{{ messages[0].content }}" {
		t.Errorf("tokenizer_config.json: %v", tokens)
	}
	if leaves.template != "{{ messages[0].content }}" || string(leaves.files[fileTemplate]) != leaves.template {
		t.Errorf("template %q", leaves.template)
	}
}

// A model that was tuned on conversations without a template says how they were written, and other programs write them
// so.
func TestLeavesHoldTheTemplateOfTraining(t *testing.T) {
	leaves, got := leavesOf(t, tuned(t, nil, "labels: {chat_template: plain}\n"))
	if leaves.template != serve.PlainTemplate || got[fileTokenizerConfig]["chat_template"] != serve.PlainTemplate {
		t.Fatalf("template %q", leaves.template)
	}
	parsed, err := chat.Parse(leaves.template)
	if err != nil {
		t.Fatal(err)
	}
	talk := []openai.Message{{Role: "system", Content: "Be brief. "}, {Role: "user", Content: "Hi"},
		{Role: "assistant", Content: " Hello."}, {Role: "user", Content: "Bye"}}
	var turns []chat.Message
	for _, m := range talk {
		turns = append(turns, chat.Message(m))
	}
	rendered, err := parsed.Render(turns, "", "")
	if err != nil {
		t.Fatal(err)
	}
	write, err := serve.Transcripts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := write(talk); err != nil || rendered != plain+"Assistant:" {
		t.Errorf("%q, want %q (%v)", rendered, plain, err)
	}
	if other, _ := leavesOf(t, tuned(t, nil, "")); other.template != "" {
		t.Errorf("template %q of a model that was not tuned on conversations", other.template)
	}
}

// tuned is a job that starts from a folder with the given files, and more in its own file.
func tuned(t *testing.T, files map[string]string, more string) *job.Job {
	t.Helper()
	first := jobtest.Small(t)
	b, err := New(first)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(first.Dir(), "base")
	if err := os.Mkdir(base, 0o755); err != nil {
		t.Fatal(err)
	}
	written, err := (&folder.Model{Config: *b.Language, Tensors: b.Language.Init(1)}).Files(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{FileTokenizer: b.Tokenizer.JSON()}
	for _, f := range written {
		var out bytes.Buffer
		if err := f.Write(&out); err != nil {
			t.Fatal(err)
		}
		all[f.Name] = out.Bytes()
	}
	text := strings.Replace(string(all[FileConfig]), `"eos_token_id": null`, `"eos_token_id": [2, 3], "pad_token_id": 7`,
		1)
	all[FileConfig] = []byte(strings.Replace(text, `"bos_token_id": null`, `"bos_token_id": 1`, 1))
	for name, text := range files {
		all[name] = []byte(text)
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(base, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	source := strings.Replace(string(first.Source), "  architecture: gpt2\n  config: {n_layer: 1, n_embd: 16, n_head: "+
		"2, n_positions: 16}\n  tokenizer: byte-level\n", "  base_model: base\n", 1)
	path := filepath.Join(first.Dir(), "tune.yaml")
	if err := os.WriteFile(path, []byte(source+more), 0o644); err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return j
}
