package node

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/templates"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
)

// A model is held against the memory before anything of it is made; of an adapter the outer optimizer needs none.
func TestBeginningsThatDoNotFit(t *testing.T) {
	b := mustBlueprint(t, jobtest.Small(t))
	need := uint64(b.Model.Parameters()) * prepare.BytesOfWeight * 2 // with the momentum
	for _, c := range []struct {
		free  uint64
		known bool
		fits  bool
	}{{need, true, true}, {need - 1, true, false}, {0, false, true}} {
		err := b.BeginningIn(c.free, c.known)
		var wrong *problem.ErrorList
		if errors.As(err, &wrong) == c.fits || !c.fits && wrong.Errors[0].Code != problem.TooLarge {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A run whose start failed leaves nothing that a later start could resume.
func TestStartThatFails(t *testing.T) {
	dir, home := t.TempDir(), filepath.Join(t.TempDir(), "home")
	_, err := Train(t.Context(), consumer.Options{Job: jobtest.Small(t), Dir: dir, Network: "http://127.0.0.1:1",
		Home: home})
	if err == nil {
		t.Fatal("it trains on no network")
	}
	if err := rundir.Probe(dir); err != nil {
		t.Errorf("%v", err)
	}
}

// The budget of a template pays for its job here, and its keys make one.
func TestTemplatesCanBeTrained(t *testing.T) {
	for _, x := range templates.All() {
		dir := t.TempDir()
		text := strings.Repeat("The bird sings in the morning, and the cat listens to it; nobody else is there.\n", 3000)
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "data"), 0o755),
			os.WriteFile(filepath.Join(dir, "data", "a.txt"), []byte(text), 0o644),
			os.WriteFile(filepath.Join(dir, "data", "a.jsonl"),
				[]byte(strings.Repeat(`{"text": "The bird sings.", "prompt": "The ", "completion": "bird", "chosen": "bird", `+
					`"rejected": "cat", "label": "song", "anchor": "Who sings?", "positive": "A bird."}`+"\n"+
					`{"text": "Who is it?", "prompt": "A ", "completion": "cat", `+
					`"chosen": "cat", "rejected": "dog", "label": "question", "anchor": "Who purrs?", `+
					`"positive": "A cat."}`+"\n", 1500)), 0o644),
			os.WriteFile(filepath.Join(dir, "job.yaml"), x.File, 0o644)); err != nil {
			t.Fatal(err)
		}
		writePictures(t, filepath.Join(dir, "data"))
		writeGraph(t, filepath.Join(dir, "graph"))
		var set []string
		if slices.Contains([]string{"finetune", "preferences", "reward-model", "rewards"}, x.Name) {
			jobtest.WriteBase(t, filepath.Join(dir, "base"))
			set = append(set, "sequence_len=32")
		}
		j, err := job.Load(filepath.Join(dir, "job.yaml"), set...)
		if err != nil {
			t.Fatalf("%s: %v", x.Name, err)
		}
		if x.Name == "pretrain" { // a small vocabulary is learnt sooner, and costs less
			j.Model.Tokenizer.VocabSize = 300
		}
		b, err := prepare.New(j)
		if err != nil {
			t.Fatalf("%s: %v", x.Name, err)
		}
		if _, err := b.LocalOrder(); err != nil {
			t.Errorf("%s: %v", x.Name, err)
		}
		if s := j.Strategy; s.OptimizerStateRounds < 2 {
			t.Errorf("%s: moments begin with zero in every unit", x.Name)
		}
	}
}

// writePictures writes images of two classes, each in its folder.
func writePictures(t *testing.T, dir string) {
	t.Helper()
	for i := range 40 {
		m := image.NewGray(image.Rect(0, 0, 4, 4))
		m.SetGray(i%4, i/4%4, color.Gray{Y: 255})
		var file bytes.Buffer
		folder := filepath.Join(dir, []string{"a", "b"}[i%2])
		if err := errors.Join(png.Encode(&file, m), os.MkdirAll(folder, 0o755),
			os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.png", i)), file.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// writeGraph writes a ring of nodes of two classes.
func writeGraph(t *testing.T, dir string) {
	t.Helper()
	const count = 60
	lines, rows := "", "source,target\n"
	for i := range count {
		lines += fmt.Sprintf("{\"id\": %d, \"label\": %d, \"features\": {\"%d\": 1}}\n", i, i%2, i%7)
		rows += fmt.Sprintf("%d,%d\n", i, (i+2)%count)
	}
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "nodes.jsonl"), []byte(lines), 0o644),
		os.WriteFile(filepath.Join(dir, "edges.csv"), []byte(rows), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func mustBlueprint(t *testing.T, j *job.Job) *prepare.CompiledJob {
	t.Helper()
	b, err := prepare.New(j)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
