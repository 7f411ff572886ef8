package node

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/textgen"
	"github.com/starling-network/starling/node/verify"
)

// A job that starts from the model of another run starts at the loss of that run, and is verified from its files and
// from the base model that it ships.
func TestTrainFromBaseModel(t *testing.T) {
	t.Parallel()
	first := jobtest.Small(t)
	base := filepath.Join(first.Dir(), "base")
	trained := mustTrain(t, consumer.Options{Job: first, Dir: base})

	text := strings.Replace(string(first.Source), "  architecture: gpt2\n  config: {n_layer: 1, n_embd: 16, n_head: 2, "+
		"n_positions: 16}\n  tokenizer: byte-level\n",
		"  base_model: base\n", 1)
	path := filepath.Join(first.Dir(), "tune.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	s := mustTrain(t, consumer.Options{Job: j, Dir: out})
	if s.FirstEvalLoss != trained.FinalEvalLoss {
		t.Errorf("it starts at an eval loss of %v, the base model ended at %v", s.FirstEvalLoss, trained.FinalEvalLoss)
	}
	if s.StateRoot == trained.StateRoot || s.Job == trained.Job {
		t.Errorf("the second run is the first: %s %v", s.Job, s.StateRoot)
	}
	for _, shipped := range []bool{false, true} {
		v, err := verify.Run(t.Context(), out, verify.Options{Shipped: shipped})
		if err != nil || v.StateRoot != s.StateRoot {
			t.Errorf("verified %+v, %v", v, err)
		}
	}
	t.Run("adapter", func(t *testing.T) { testAdapter(t, j, base, trained) })
	t.Run("another base", func(t *testing.T) { testOtherBase(t, j, base, out) })
}

// testAdapter trains an adapter of the base model with a cheating worker. The adapter starts equal to the base model,
// changes it, and leaves the merged model and a folder that PEFT loads.
func testAdapter(t *testing.T, j *job.Job, base string, trained *rundir.Summary) {
	text := strings.Replace(string(j.Source), "  base_model: base\n",
		"  base_model: base\n  adapter: {lora: {r: 2, alpha: 4}}\n", 1)
	path := filepath.Join(j.Dir(), "adapter.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	tune, err := job.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	s := mustTrain(t, consumer.Options{Job: tune, Dir: out, Dishonest: 1})
	if s.FirstEvalLoss != trained.FinalEvalLoss || s.FinalEvalLoss == s.FirstEvalLoss || len(s.Disputes) == 0 {
		t.Errorf("eval loss from %v to %v with %d disputes; the base model has %v", s.FirstEvalLoss, s.FinalEvalLoss,
			len(s.Disputes), trained.FinalEvalLoss)
	}
	for _, shipped := range []bool{false, true} {
		if v, err := verify.Run(t.Context(), out, verify.Options{Shipped: shipped}); err != nil ||
			v.StateRoot != s.StateRoot {
			t.Errorf("verified %+v, %v", v, err)
		}
	}
	for _, name := range []string{prepare.FileAdapter, prepare.FileAdapterConfig} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(out, prepare.FileAdapterConfig)); err != nil ||
		!strings.Contains(string(text), `"base_model_name_or_path": "base"`) {
		t.Errorf("the adapter does not name its base: %s, %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(out, "README.md")); err != nil ||
		strings.Contains(string(text), "base_model: base\nlibrary") {
		t.Errorf("the card names a folder where the Hub wants a repository: %v", err)
	}
	if _, err := textgen.OpenModel(out); err != nil {
		t.Fatal(err)
	}
	whole, err1 := folder.Read(os.DirFS(out))
	before, err2 := folder.Read(os.DirFS(base))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for n, w := range whole.Tensors {
		if w.Root() != before.Tensors[n].Root() {
			changed++
		}
	}
	if changed != 4 { // c_attn, attn.c_proj, c_fc and mlp.c_proj of its one layer
		t.Errorf("%d tensors of the merged model differ from the base model, wanted 4", changed)
	}
}

// testOtherBase checks that the initial weights are part of a job's identity, and that unusable weights are refused
// with the line of the job file.
func testOtherBase(t *testing.T, j *job.Job, base, out string) {
	weights := filepath.Join(base, prepare.FileModel)
	text, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-1] ^= 1
	if err := os.WriteFile(weights, text, 0o644); err != nil {
		t.Fatal(err)
	}
	var differs *verify.MismatchError
	if _, err := verify.Run(t.Context(), out, verify.Options{}); !errors.As(err, &differs) {
		t.Errorf("another base model: %v", err)
	}
	if err := os.WriteFile(weights, text[:len(text)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	var l *problem.ErrorList
	if _, err := prepare.New(j); !errors.As(err, &l) || l.Errors[0].Line != 5 ||
		!strings.Contains(l.Errors[0].Why, prepare.FileModel) {
		t.Errorf("half a base model: %v", err)
	}
}

// A base model that is not there or of no known kind is refused with its place in the job file.
func TestBaseModelRefused(t *testing.T) {
	j := jobtest.Small(t)
	dir := filepath.Join(j.Dir(), "base")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"model_type": "bert"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, prepare.FileConfig), config, 0o644); err != nil {
		t.Fatal(err)
	}
	for base, code := range map[string]string{"base": problem.BadValue, "nowhere": problem.FileNotFound} {
		text := strings.Replace(string(j.Source), "  architecture: gpt2\n  config: {n_layer: 1, n_embd: 16, n_head: 2, "+
			"n_positions: 16}\n", "  base_model: "+base+"\n", 1)
		path := filepath.Join(j.Dir(), base+".yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		tune, err := job.Load(path)
		if err == nil {
			_, err = prepare.New(tune)
		}
		var l *problem.ErrorList
		if !errors.As(err, &l) || l.Errors[0].Code != code || l.Errors[0].Line == 0 {
			t.Errorf("base_model %s: %v", base, err)
		}
	}
}
