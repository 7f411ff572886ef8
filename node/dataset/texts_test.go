package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/role/bundle"
)

const classified = "apiVersion: starling/v1\nkind: TrainingJob\ntask: classify\nmodel: {architecture: gpt2}\n" +
	"datasets: [{path: \"*.jsonl\"}]\nsequence_len: 6\nval_set_size: 0.25\ntraining: {max_steps: 8}\n"

// textJob is a job in a folder with the given files.
func textJob(t *testing.T, files map[string]string, set ...string) *job.Job {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(path, []byte(classified), 0o644); err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(path, set...)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// The same texts in lines of JSON and in CSV are the same examples: cut off at their end, or filled up.
func TestTexts(t *testing.T) {
	files := map[string]string{"rows.csv": "stars,review\n"}
	for i := range 12 {
		label, text := []string{"good", "bad", "3"}[i%3], strings.Repeat(string(rune('a'+i)), 2+i%3*3)
		files["a.jsonl"] += fmt.Sprintf("{\"text\": %q, \"label\": %q}\n", text, label)
		files["rows.csv"] += label + "," + text + "\n"
	}
	j := textJob(t, files)
	texts, err := TextsOf(j)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(texts.Labels, []string{"3", "bad", "good"}) || texts.Pad != 256 ||
		texts.Corpus.Train.Len() != 9*7 || texts.Corpus.Val.Len() != 3*7 {
		t.Fatalf("%q, padding %d, %d tokens to train on, %d held out", texts.Labels, texts.Pad, texts.Corpus.Train.Len(),
			texts.Corpus.Val.Len())
	}
	for i := 0; i < texts.Corpus.Train.Len(); i += 7 {
		var row []int
		for k := range 7 {
			row = append(row, int(texts.Corpus.Train.At(i+k)))
		}
		at := row[1] - 'a'
		want := []int{[]int{2, 1, 0}[at%3]}
		for k := range 6 {
			if k < 2+at%3*3 {
				want = append(want, 'a'+at)
			} else {
				want = append(want, 256)
			}
		}
		if !slices.Equal(row, want) {
			t.Errorf("a row is %d, want %d", row, want)
		}
	}
	count, err := Count(t.Context(), j, nil)
	if err != nil || count.Sequences != 8 || count.SequenceLength != 7 || count.Documents != 12 ||
		count.Digest != texts.Corpus.Manifest(bundle.ShardTokens).Digest().String() {
		t.Errorf("counted %+v, %v", count, err)
	}
	byRows := textJob(t, files, "datasets=[{path: rows.csv, field: review, label_field: stars}]")
	again, err := TextsOf(byRows)
	if err != nil || again.Corpus.Manifest(1<<20).Digest() != texts.Corpus.Manifest(1<<20).Digest() {
		t.Errorf("the rows of CSV are other examples: %v", err)
	}
	for _, of := range []*job.Job{j, byRows} {
		found, err := Of(of)
		if err != nil {
			t.Fatal(err)
		}
		reports, err := Inspect(t.Context(), found, 10)
		if v := Judge(reports); err != nil || !v.Valid || v.Documents != 12 || reports[0].Text != 60 {
			t.Errorf("%+v, %v", v, err)
		}
	}
}

// Texts are filled up with the padding of the base model, or with the token that ends a text.
func TestPadding(t *testing.T) {
	files := map[string]string{"a.jsonl": "{\"text\": \"x\", \"label\": 1}\n{\"text\": \"y\", \"label\": 2}\n" +
		"{\"text\": \"z\", \"label\": 2}\n{\"text\": \"zz\", \"label\": 2}\n"}
	train := "model={architecture: gpt2, tokenizer: {train: {type: bpe, vocab_size: 300}}}"
	if texts, err := TextsOf(textJob(t, files, train)); err != nil {
		t.Error(err)
	} else if end, ok := texts.Tokenizer.EndOfText(); !ok || texts.Pad != int(end) {
		t.Errorf("trained tokenizer: %d", texts.Pad)
	}
	for config, want := range map[string]int{
		`{"vocab_size": 300, "pad_token_id": 3, "eos_token_id": 7}`:         3,
		`{"vocab_size": 300, "pad_token_id": null, "eos_token_id": 7}`:      7,
		`{"vocab_size": 300, "pad_token_id": -1, "eos_token_id": [9, 7]}`:   9,
		`{"vocab_size": 300, "pad_token_id": 300, "eos_token_id": 5}`:       5,
		`{"vocab_size": 300, "pad_token_id": null, "eos_token_id": "what"}`: 256,
		`{`: -1,
	} {
		files["base/config.json"] = config
		texts, err := TextsOf(textJob(t, files, "model={base_model: base, tokenizer: byte-level}"))
		var list *problem.ErrorList
		if want < 0 && !errors.As(err, &list) || want >= 0 && (err != nil || texts.Pad != want) {
			t.Errorf("%s: %+v, %v", config, texts, err)
		}
	}
}

func TestTextsThatAreNone(t *testing.T) {
	line := `{"text": "x", "label": "a"}` + "\n"
	for _, c := range []struct{ want, text, set string }{
		{"no second class", line + line, ""},
		{"a.jsonl:2: no such text: the object has no field \"label\"", line + `{"text": "y"}`, ""},
		{"a.jsonl:2: no such text: the object has no field \"text\"", line + `{"label": "y"}`, ""},
		{"the object has no field \"stars\"", line, "datasets=[{path: a.jsonl, label_field: stars}]"},
		{"neither a text nor a number", line + `{"text": "y", "label": {}}`, ""},
		{"the text is empty", line + `{"text": "", "label": "b"}`, ""},
		{"there is none", "\n", ""},
		{"the first row names no column \"label\"", "text,class\nx,y\n", "datasets=[{path: a.jsonl, format: csv}]"},
	} {
		set := []string{"seed=1"}
		if c.set != "" {
			set = append(set, c.set)
		}
		j := textJob(t, map[string]string{"a.jsonl": c.text}, set...)
		_, err := TextsOf(j)
		var list *problem.ErrorList
		if !errors.As(err, &list) || list.Errors[0].Code != problem.NoData || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
		found, err := Of(j)
		if err != nil {
			t.Fatal(err)
		}
		reports, err := Inspect(t.Context(), found, 10)
		if v := Judge(reports); err != nil || v.Valid != (c.text == line+line || c.text == "\n") {
			t.Errorf("%s: reported %+v, %v", c.want, v, err)
		}
	}
}
