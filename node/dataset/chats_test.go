package dataset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/tokenizer"
)

// chatJob is a job on a file of conversations, of a model with a chat template or none.
func chatJob(t *testing.T, template, lines string) *job.Job {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	model := "architecture: gpt2\n  tokenizer: byte-level\n  config: {n_layer: 1, n_embd: 8, n_head: 1, n_positions: 16}"
	if template != "" {
		model = "base_model: ."
		write("config.json", "{}")
		write("tokenizer.json", "{}")
		write("tokenizer_config.json", `{"chat_template": "`+template+`"}`)
	}
	write("chats.jsonl", lines)
	write("job.yaml", "apiVersion: starling/v1\nkind: TrainingJob\nname: chats\nmodel:\n  "+model+
		"\ndatasets: [{path: chats.jsonl, format: jsonl, field: messages}]\nsequence_len: 8\n"+
		"training: {max_steps: 2, global_batch_size: 2, learning_rate: 1.0e-3}\nstrategy: {workers: 1}\n")
	j, err := job.Load(filepath.Join(dir, "job.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

const talk = `{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}` + "\n"

// Of conversations whose answers alone are learnt, the rest is marked, in the form of the model that learns them.
func TestAnswersAreMarked(t *testing.T) {
	lines := `{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}, ` +
		`{"role": "user", "content": "So"}, {"role": "assistant", "content": "No"}]}` + "\n"
	for template, want := range map[string]string{
		"": strings.Repeat(".", 20) + " Yes" + strings.Repeat(".", 22) + " No..",
		"{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}" +
			"{% if add_generation_prompt %}<assistant>{% endif %}": "...................Yes...................No",
	} {
		j := chatJob(t, template, lines)
		j.Training.TrainOnInputs = false
		sources, err := Sources(j)
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := Corpus(j, sources, tokenizer.Bytes(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, part := range []data.Tokens{c.Train, c.Val} {
			for i := range part.Len() {
				if id := part.At(i); id < 256 {
					got.WriteByte(byte(id))
				} else {
					got.WriteByte('.')
				}
			}
		}
		if plain := strings.ReplaceAll(got.String(), "\n", "."); plain != want {
			t.Errorf("%q: %q, want %q", template, plain, want)
		}
	}
	j := chatJob(t, "{% for m in messages %}{{ messages | length }}{{ m['content'] }}{% endfor %}", lines)
	j.Training.TrainOnInputs = false
	sources, err := Sources(j)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Corpus(j, sources, tokenizer.Bytes(), nil); err == nil || !strings.Contains(err.Error(), "turn 2") {
		t.Errorf("a template that counts turns: %v", err)
	}
}

// Conversations are documents in the form of the model that learns them.
func TestConversationsAreDocuments(t *testing.T) {
	for template, want := range map[string]string{
		"": "User: Hi\n\nAssistant: Hello!\n\n",
		"{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}": "<user>Hi<assistant>Hello!",
	} {
		sources, err := Sources(chatJob(t, template, talk+talk))
		if err != nil {
			t.Fatal(err)
		}
		docs, err := documentsOf(sources[0])
		if err != nil || len(docs) != 2 || docs[0].Text != want {
			t.Errorf("%q: %+v, %v", template, docs, err)
		}
	}
	sources, err := Sources(chatJob(t, "", talk+`{"messages": [{"role": "king", "content": "Hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := documentsOf(sources[0]); err == nil || !strings.Contains(err.Error(), "chats.jsonl") ||
		!strings.Contains(err.Error(), "king") {
		t.Errorf("a message by nobody: %v", err)
	}
}
