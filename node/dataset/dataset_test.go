package dataset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/data/source"
)

// folder has a job and its data.
func folder(t *testing.T, datasets, tokenizer string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.jsonl":  "{\"text\":\"one two three\"}\n{\"text\":\"four five six\"}\n",
		"b.txt":    strings.Repeat("seven eight ", 10),
		"bad.json": "{\"text\":\"fine\"}\n{\"body\":\"no text\"}\nno json\n",
		"job.yaml": fmt.Sprintf("apiVersion: starling/v1\nkind: TrainingJob\nmodel: {architecture: gpt2, tokenizer: "+
			"%s}\ndatasets: %s\nsequence_len: 8\nval_set_size: 0.25\n"+
			"training: {max_steps: 12, global_batch_size: 2}\nstrategy: {workers: 2, sync_steps: 4}\n", tokenizer, datasets),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t *testing.T, dir string) *job.Job {
	t.Helper()
	j, err := job.Load(filepath.Join(dir, "job.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

const both = "[{path: a.jsonl, format: jsonl}, {path: b.txt}]"

// A job of two epochs has as many steps as its data has batches, twice, in whole rounds.
func TestInSteps(t *testing.T) {
	dir := folder(t, both, "byte-level")
	j, err := job.Load(filepath.Join(dir, "job.yaml"), "training.max_steps=null", "training.num_epochs=2")
	if err != nil {
		t.Fatal(err)
	}
	made, err := InSteps(j, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := made.Training; n.MaxSteps != 16 || n.NumEpochs != 0 || made.Rounds() != 4 { // 2 x 6.5 steps, rounds of 4
		t.Errorf("%d steps in %d rounds, %v epochs", n.MaxSteps, made.Rounds(), n.NumEpochs)
	}
	if j = load(t, dir); j.Training.MaxSteps != 12 {
		t.Fatal(j.Training)
	}
	if same, err := InSteps(j, nil); same != j || err != nil {
		t.Errorf("a job in steps is changed: %v", err)
	}
}

func TestCount(t *testing.T) {
	s, err := Count(context.Background(), load(t, folder(t, both, "byte-level")), nil)
	if err != nil {
		t.Fatal(err)
	}
	// 26 and 120 bytes of text; of 146 tokens 36 are held out, and of the 110 others 13 sequences of 8 have a next token.
	if s.Files != 2 || s.Documents != 3 || s.Text != 146 || s.TrainTokens != 110 || s.ValTokens != 36 ||
		s.Sequences != 13 || s.EpochSteps != 6.5 || s.Epochs != 12/6.5 ||
		s.BytesPerToken != 1 || s.Vocab != 256 || s.Shards != 1 || s.ShardBytes != 292 || len(s.Digest) != 64 || s.TooShort {
		t.Errorf("%+v", s)
	}
	short := folder(t, "[{path: a.jsonl, format: jsonl}]", "byte-level")
	j, err := job.Load(filepath.Join(short, "job.yaml"), "sequence_len=40")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Count(context.Background(), j, nil); err != nil || !s.TooShort || s.Sequences != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	var list *problem.ErrorList
	if _, err := Count(context.Background(),
		load(t, folder(t, "[{path: bad.json, format: jsonl}]", "byte-level")), nil); !errors.As(err, &list) ||
		!strings.Contains(err.Error(), "bad.json:2") {
		t.Errorf("data that cannot be used: %v", err)
	}
}

// A job that names the tokens has the data of the job that names the text: the same digest stands for it in its
// specification.
func TestTokenizeGivesTheSameData(t *testing.T) {
	for _, v := range []Vocabulary{{}, {Size: 270}} {
		tokenizer := "byte-level"
		if v.Size > 0 {
			tokenizer = "{train: {type: bpe, vocab_size: 270}}"
		}
		text := load(t, folder(t, both, tokenizer))
		files, err := Of(text)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "tokens")
		made, err := Tokenize(files, v, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		again := load(t, folder(t, fmt.Sprintf("[{path: %q, format: llmc-bin}]", made.Path),
			fmt.Sprintf("%q", made.Tokenizer)))
		want, err := Count(context.Background(), text, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Count(context.Background(), again, nil)
		if err != nil || got.Digest != want.Digest || got.TrainTokens+got.ValTokens != made.Tokens ||
			got.Vocab != made.Vocab {
			t.Errorf("%v\n%+v\n%+v", err, got, want)
		}
		if _, err := Tokenize(files, v, dir, nil); !errors.Is(err, ErrExists) {
			t.Errorf("again: %v", err)
		}
		if v.Size > 0 {
			if _, err := Tokenize([]File{{Path: made.Path, Format: "llmc-bin"}},
				Vocabulary{File: made.Tokenizer}, filepath.Join(dir, "copy"), nil); err != nil {
				t.Errorf("the tokens of tokens: %v", err)
			}
		}
	}
}

func TestInspect(t *testing.T) {
	dir := folder(t, both, "byte-level")
	files, err := Named([]string{filepath.Join(dir, "bad.json"), filepath.Join(dir, "b.txt")}, "", "")
	if !errors.Is(err, ErrFormat) {
		t.Errorf("%v: a name that tells no format: %v", files, err)
	}
	if files, err = Named([]string{filepath.Join(dir, "bad.json")}, "jsonl", ""); err != nil {
		t.Fatal(err)
	}
	all, err := Inspect(context.Background(), files, 10)
	if err != nil || len(all) != 1 || all[0].Documents != 1 || len(all[0].Faults) != 2 || all[0].Faults[0].Line != 2 ||
		all[0].Faults[1].Line != 3 || all[0].Field != "text" || len(all[0].SHA256) != 64 {
		t.Errorf("%v: %+v", err, all)
	}
	for name, format := range map[string]string{"x.TXT": "", "x.txt.gz": "text", "d/x.jsonl.zst": "jsonl",
		"x.parquet": "parquet", "x.csv.gz": "csv", "x.bin": "llmc-bin"} {
		files, err := Named([]string{name}, "", "")
		if format == "" {
			if err == nil {
				t.Errorf("%s: %+v", name, files)
			}
		} else if err != nil || files[0].Format != format {
			t.Errorf("%s: %+v, %v", name, files, err)
		}
	}
}

// documentsOf are those of a file.
func documentsOf(f source.File) (docs []source.Document, err error) {
	for d, err := range f.Documents(1<<20, nil) {
		if err != nil {
			return docs, err
		}
		docs = append(docs, d)
	}
	return docs, nil
}

// Conversations of a job file are text, as the base model's template writes them, or, of a model without one, line by
// line.
func TestChats(t *testing.T) {
	dir := folder(t, "[{path: chat.jsonl, format: jsonl, field: messages}]", "byte-level")
	line := `{"messages": [{"role": "user", "content": "What does the bird do?"}, {"role": "assistant", "content": "It ` +
		`sings."}]}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "chat.jsonl"), []byte(strings.Repeat(line, 9)), 0o644); err != nil {
		t.Fatal(err)
	}
	j := load(t, dir)
	if !j.Chats() {
		t.Error("it has no conversations")
	}
	documents := func(base string) []source.Document {
		t.Helper()
		files, err := Of(j)
		if err != nil {
			t.Fatal(err)
		}
		files[0].base = base
		s, err := files[0].source()
		if err != nil {
			t.Fatal(err)
		}
		all, err := documentsOf(s)
		if err != nil || len(all) != 9 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all
	}
	if got := documents("")[0].Text; got != "User: What does the bird do?\n\nAssistant: It sings.\n\n" {
		t.Errorf("%q", got)
	}
	template := `{"chat_template": "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"}`
	if err := os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte(template), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := documents(dir)[0].Text; got != "<user>What does the bird do?<assistant>It sings." {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "chat.jsonl"),
		[]byte(line+`{"messages": [{"role": "user", "content": "Hi"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Count(context.Background(), j, nil); err == nil || !strings.Contains(err.Error(), "chat.jsonl:2") ||
		!strings.Contains(err.Error(), "the assistant") {
		t.Errorf("a conversation without an answer: %v", err)
	}
}
