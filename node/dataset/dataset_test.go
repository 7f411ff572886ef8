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
)

// folder has a job and its data.
func folder(t *testing.T, datasets, tokenizer string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.jsonl":  "{\"text\":\"one two three\"}\n{\"text\":\"four five six\"}\n",
		"b.txt":    strings.Repeat("seven eight ", 10),
		"bad.json": "{\"text\":\"fine\"}\n{\"body\":\"no text\"}\nno json\n",
		"job.yaml": fmt.Sprintf("apiVersion: starling/v1\nkind: TrainingJob\nmodel: {architecture: gpt2, tokenizer: %s}\ndatasets: %s\nsequence_len: 8\nval_set_size: 0.25\n"+
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

func TestCount(t *testing.T) {
	s, err := Count(context.Background(), load(t, folder(t, both, "byte-level")))
	if err != nil {
		t.Fatal(err)
	}
	// 26 and 120 bytes of text; of 146 tokens 36 are held out, and of the 110 others 13 sequences of 8 have a next token.
	if s.Files != 2 || s.Documents != 3 || s.Text != 146 || s.TrainTokens != 110 || s.ValTokens != 36 || s.Sequences != 13 || s.EpochSteps != 6.5 || s.Epochs != 12/6.5 ||
		s.BytesPerToken != 1 || s.Vocab != 256 || s.Shards != 1 || s.ShardBytes != 292 || len(s.Digest) != 64 || s.TooShort {
		t.Errorf("%+v", s)
	}
	short := folder(t, "[{path: a.jsonl, format: jsonl}]", "byte-level")
	j, err := job.Load(filepath.Join(short, "job.yaml"), "sequence_len=40")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Count(context.Background(), j); err != nil || !s.TooShort || s.Sequences != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	var list *job.ErrorList
	if _, err := Count(context.Background(), load(t, folder(t, "[{path: bad.json, format: jsonl}]", "byte-level"))); !errors.As(err, &list) || !strings.Contains(err.Error(), "bad.json:2") {
		t.Errorf("data that cannot be used: %v", err)
	}
}

// A job that names the tokens has the data of the job that names the text: the same digest stands for it in its specification.
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
		made, err := Tokenize(context.Background(), files, v, dir)
		if err != nil {
			t.Fatal(err)
		}
		again := load(t, folder(t, fmt.Sprintf("[{path: %q, format: llmc-bin}]", made.Path), fmt.Sprintf("%q", made.Tokenizer)))
		want, err := Count(context.Background(), text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Count(context.Background(), again)
		if err != nil || got.Digest != want.Digest || got.TrainTokens+got.ValTokens != made.Tokens || got.Vocab != made.Vocab {
			t.Errorf("%v\n%+v\n%+v", err, got, want)
		}
		if _, err := Tokenize(context.Background(), files, v, dir); !errors.Is(err, ErrExists) {
			t.Errorf("again: %v", err)
		}
		if v.Size > 0 {
			if _, err := Tokenize(context.Background(), []File{{Path: made.Path, Format: "llmc-bin"}}, Vocabulary{File: made.Tokenizer}, filepath.Join(dir, "copy")); err != nil {
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
	if err != nil || len(all) != 1 || all[0].Documents != 1 || len(all[0].Faults) != 2 || all[0].Faults[0].Line != 2 || all[0].Faults[1].Line != 3 || all[0].Field != "text" || len(all[0].SHA256) != 64 {
		t.Errorf("%v: %+v", err, all)
	}
	for name, format := range map[string]string{"x.TXT": "", "x.txt.gz": "text", "d/x.jsonl.zst": "jsonl", "x.parquet": "parquet", "x.bin": "llmc-bin"} {
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
