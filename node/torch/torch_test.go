package torch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/screen"
	"github.com/starling-network/starling/internal/torchtest"
	"github.com/starling-network/starling/node/confine"
)

// python is a Python with torch, "" if there is none.
var python = sync.OnceValue(func() string {
	for _, p := range []string{"/usr/bin/python3", "python3"} {
		if torchtest.Installed(p) {
			return p
		}
	}
	return ""
})

// options of a child with torch, or the test is skipped.
func options(t testing.TB) Options {
	t.Helper()
	if python() == "" {
		t.Skip("SKIPPED: no python3 here can import torch (apt install python3-torch): nothing is known of the executor")
	}
	return Options{Python: python(), Threads: 1, MiB: 4 << 10, Timeout: 10 * time.Minute}
}

// unless skips the test where there is no box: one of less than the full level is not what is tested.
func unless(t testing.TB, err error) {
	t.Helper()
	if e, ok := errors.AsType[*Error](err); ok && e.Code == codeIsolation {
		t.Skipf("SKIPPED: %v", e)
	}
}

// newTask makes a job on made-up text.
func newTask(t testing.TB, modelType string, config map[string]any, batch, length,
	steps int) (*train.Task, *train.Checkpoint) {
	t.Helper()
	return newTaskWith(t, adamw, modelType, config, batch, length, steps)
}

var adamw = optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}

func newTaskWith(t testing.TB, o optimizer.AdamW, modelType string, config map[string]any, batch, length,
	steps int) (*train.Task, *train.Checkpoint) {
	t.Helper()
	c, err := architecture.Parse(modelType, config)
	if err != nil {
		t.Fatal(err)
	}
	step, err := model.TrainStep(c, o, batch, length)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&text, "number %d follows %d and %d is no prime; ", i+1, i, i*(i+7))
	}
	corpus, err := data.Build([]source.File{{Format: "text", Name: "numbers", Data: []byte(text.String())}},
		tokenizer.Bytes(), 0.1)
	if err != nil {
		t.Fatal(err)
	}
	exec, err := cpu.Compile(step, kernel.Cores)
	if err != nil {
		t.Fatal(err)
	}
	genesis, err := train.Genesis(train.Params(step), c.Init(7), 1)
	if err != nil {
		t.Fatal(err)
	}
	spec := &train.Spec{
		Version: 1, Numerics: step.Numerics, Name: "numbers", Seed: 7, Program: step.Digest(),
		Data: corpus.Manifest(1 << 20).Digest(), Genesis: genesis.Root(),
		Rounds: 2, Steps: uint32(steps), Segment: uint32((steps + 3) / 4), Units: 2, Batch: uint32(batch),
		Length: uint32(length),
		Rate:   train.Rate{Kind: train.Cosine, Peak: 1e-3, Warmup: 5, Floor: 0.1}, Beta1: 0.9, Beta2: 0.95,
		Exchange: train.Exchange{Codec: "none", Rule: "mean", Outer: "nesterov", Rate: 0.7, Momentum: 0.9},
	}
	return &train.Task{Spec: spec, Step: step, Exec: exec, Corpus: corpus}, genesis
}

var (
	tinyGPT2  = map[string]any{"n_layer": 2, "n_embd": 32, "n_head": 2, "n_positions": 32, "vocab_size": 256}
	tinyLlama = map[string]any{"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
		"num_key_value_heads": 2, "intermediate_size": 64, "max_position_embeddings": 32, "vocab_size": 256}
	gpt210M = map[string]any{"n_layer": 6, "n_embd": 384, "n_head": 6, "n_positions": 256, "vocab_size": 256}
	whole   = flag.Bool("parity", false, "hold 100 steps of gpt2-10m against the built-in engine; takes some ten "+
		"minutes of two idle processors")
	batch  = flag.Int("batch", 8, "sequences of a step of -parity")
	length = flag.Int("length", 256, "tokens of each")
	rate   = flag.Float64("rate", 3e-4, "of the steps, at its peak; where it is so high that training is unstable, "+
		"differences grow with every step")
)

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"train every model, by FedProx and by the step of an owner, too, as .ci/run does")

// lossParity is how far a loss may be from that of the built-in engine, in nats.
const lossParity = 1e-3

// parity trains a unit with both, and returns the largest difference of their losses and how alike their updates are.
func parity(t testing.TB, o Options, task *train.Task,
	base *train.Checkpoint) (worst float64, like screen.Similarity, r *train.Result) {
	t.Helper()
	x := New(t.Context(), o, task)
	defer x.Close()
	got, err := task.RunOn(x, base, 1, nil)
	if unless(t, err); err != nil {
		t.Fatal(err)
	}
	want, err := task.Run(base, 1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Losses {
		worst = max(worst, math.Abs(float64(got.Losses[i])-float64(want.Losses[i])))
	}
	if len(got.Losses) != len(want.Losses) || len(got.Segments) != len(want.Segments) ||
		got.Segments[0] != want.Segments[0] {
		t.Errorf("%d losses and %d segments, want %d and %d", len(got.Losses), len(got.Segments), len(want.Losses),
			len(want.Segments))
	}
	return worst, screen.Compare(got.Delta, want.Delta), got
}

// The losses of both model families are those of the built-in engine to 1e-3, and so are their updates, with the
// operators of the program and with a step of the owner's in plain torch.
func TestParity(t *testing.T) {
	o := options(t)
	for _, c := range []struct {
		name, architecture string
		config             map[string]any
		module             string
		proximal           float64
	}{
		{"gpt2", architecture.GPT2, tinyGPT2, "", 0},
		{"llama", architecture.Llama, tinyLlama, "", 0},
		{"llama, by FedProx", architecture.Llama, tinyLlama, "", 0.1},
		{"gpt2 of the owner's", architecture.GPT2, tinyGPT2, "testdata/gpt2.py", 0},
		{"gpt2 of the owner's, by FedProx", architecture.GPT2, tinyGPT2, "testdata/gpt2.py", 0.1},
	} {
		if c.name != "gpt2" && !*long {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			optimizer := adamw
			optimizer.Proximal = c.proximal
			task, base := newTaskWith(t, optimizer, c.architecture, c.config, 4, 32, 20)
			root, o := base.Root(), o
			o.Module = c.module
			worst, like, r := parity(t, o, task, base)
			t.Logf("%d steps, loss %.4f to %.4f: losses differ by at most %.2g, updates by a distance of %.2g, cosine %.7f",
				task.Spec.Steps, r.Losses[0], r.Losses[len(r.Losses)-1], worst, like.Distance, like.Cosine)
			if worst > lossParity || like.Distance > 0.02 || r.Losses[len(r.Losses)-1] > r.Losses[0]-0.5 || base.Root() != root {
				t.Error("this is not the training of the built-in engine")
			}
		})
	}
}

// 100 steps of gpt2-10m, only where it is asked for: -parity.
func TestParityOfGPT2(t *testing.T) {
	if !*whole {
		t.Skip("it takes some ten minutes: run it with -parity")
	}
	o := options(t)
	o.Threads = kernel.Cores
	task, base := newTask(t, architecture.GPT2, gpt210M, *batch, *length, 100)
	task.Spec.Rate.Peak = *rate
	worst, like, r := parity(t, o, task, base)
	t.Logf("%d x %d tokens a step, loss %.4f to %.4f: losses differ by at most %.3g, updates by a distance of %.3g, "+
		"cosine %.7f", *batch, *length, r.Losses[0], r.Losses[99], worst, like.Distance, like.Cosine)
	if worst > lossParity {
		t.Errorf("losses differ by %v, at most %v is wanted", worst, lossParity)
	}
}

// bare are options of a child whose torch has no arithmetic: enough for what is about the child. It starts at once, and
// needs no torch to be there.
func bare(t testing.TB, module string) Options {
	t.Helper()
	stub, err := filepath.Abs("testdata/stub")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", stub)
	o := Options{Timeout: 5 * time.Minute, MiB: 512}
	if module != "" {
		o.Module = filepath.Join(t.TempDir(), "step.py")
		if err := os.WriteFile(o.Module, []byte(module), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := exec.LookPath(DefaultPython); err != nil {
		t.Skip("SKIPPED: there is no python3, so nothing is known of the child")
	}
	return o
}

// A step that misbehaves ends with a stable code, and the next unit begins with another child.
func TestAChildThatMisbehaves(t *testing.T) {
	task, base := newTask(t, architecture.GPT2, tinyGPT2, 1, 8, 4)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	const step = "import os\ndef step(task, state, batch):\n    "
	for _, c := range []struct{ name, text, code, says string }{
		{"opens a socket", "import socket\n" + step + "socket.create_connection(('127.0.0.1', 80))", codeStep,
			"Operation not permitted"},
		{"allocates too much", step + "return bytearray(1 << 32), state", codeMemory, "MemoryError"},
		{"runs forever", step + "while True: pass", codeTimeout, "no answer"},
		{"says half an answer", step + "os.write(4, b'\\x10\\0\\0\\0{'); os.read(3, 1)", codeTimeout, "no answer"},
		{"writes rubbish", step + "os.write(4, b'rubbish' * 100)", codeProtocol, "no answer"},
		{"writes another answer", step + "os.write(4, b'\\x10\\0\\0\\0{\"type\":\"begun\"}')", codeProtocol, "begun"},
		{"makes an error up", step + "os.write(4, b'\\x1d\\0\\0\\0{\"type\":\"error\",\"code\":\"ODD\"}')", codeProtocol,
			"an error that there is not"},
		{"dies", step + "print('last words', flush=True); os._exit(3)", codeDied, "last words"},
		{"raises", step + "raise ValueError('no idea')", codeStep, "no idea"},
		{"forgets a tensor", step + "return 1.0, {}", codeModule, "no float32 tensor"},
		{"has no step", "x = 1", codeModule, "no function step"},
		{"is no Python", "def step(", codeModule, "SyntaxError"},
		{"reads a key", step + "open(" + fmt.Sprintf("%q", key) + ").read()", codeStep, "No such file"},
		{"reads the environment", step + "raise ValueError(sorted(os.environ))", codeStep,
			"'LANG', 'OMP_NUM_THREADS', 'PATH', 'PYTHONPATH', 'TMPDIR']"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := New(t.Context(), bare(t, c.text), task)
			defer x.Close()
			err := x.Begin(stateOf(base))
			if unless(t, err); err == nil {
				if c.code == codeTimeout {
					x.child.timeout = time.Second
				}
				_, err = x.Step(make([]int32, 9), nil, 1, 1, 1)
			}
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Code != c.code || !strings.Contains(e.Error(), c.says) || e.Fix == "" {
				t.Fatalf("%v, want %s with %q and a fix", err, c.code, c.says)
			}
			if x.child != nil || x.failures != 1 {
				t.Errorf("%d failures; the child is kept: %v", x.failures, x.child != nil)
			}
		})
	}
}

// A child is started again after a failure, but not after several consecutive failures. A success resets the count.
func TestFailuresInARow(t *testing.T) {
	task, base := newTask(t, architecture.GPT2, tinyGPT2, 1, 8, 4)
	x := New(t.Context(), Options{Python: "/no/such/python"}, task)
	for range maxFailures + 2 {
		err := x.Begin(base.Params)
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != codePython {
			t.Fatal(err)
		}
	}
	if x.failures != maxFailures {
		t.Errorf("it was tried %d times, want %d", x.failures, maxFailures)
	}
	if _, err := x.Step(nil, nil, 0, 0, 0); !errors.Is(err, errNoUnit) {
		t.Error(err)
	}
	if err := x.State(nil); !errors.Is(err, errNoUnit) {
		t.Error(err)
	}
}

// A step ends at once when its worker does.
func TestEndsWithItsContext(t *testing.T) {
	task, base := newTask(t, architecture.GPT2, tinyGPT2, 1, 8, 4)
	ctx, cancel := context.WithCancel(t.Context())
	x := New(ctx, bare(t, "def step(task, state, batch):\n    while True: pass"), task)
	err := x.Begin(stateOf(base))
	if unless(t, err); err != nil {
		t.Fatal(err)
	}
	go cancel()
	if _, err := x.Step(make([]int32, 9), nil, 1, 1, 1); err == nil {
		t.Error("a step ended that does not")
	}
}

// stateOf is the state that a unit starts from.
func stateOf(base *train.Checkpoint) (state []*tensor.Tensor) {
	state = append(state, base.Params...)
	for range 2 {
		for _, p := range base.Params {
			state = append(state, tensor.New(p.Shape))
		}
	}
	return state
}

// An executor that this machine cannot run is refused before a run begins.
func TestCheck(t *testing.T) {
	o := bare(t, "")
	v, err := Check(t.Context(), o)
	if unless(t, err); err != nil || v.Torch != "stub" || v.Device != "cpu" {
		t.Errorf("%+v, %v", v, err)
	}
	for name, c := range map[string]struct {
		change func(*Options)
		code   string
	}{
		"no Python":  {func(o *Options) { o.Python = "/bin/false" }, codePython},
		"not Python": {func(o *Options) { o.Python = "/bin/echo" }, codePython},
		"no device":  {func(o *Options) { o.Device = "warp:9" }, codeDevice},
		"no module":  {func(o *Options) { o.Module = "/no/such/module.py" }, codeModule},
		"no box":     {func(o *Options) { o.Box = confine.Level("cardboard") }, codeDied},
	} {
		o := o
		c.change(&o)
		_, err := Check(t.Context(), o)
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != c.code || e.Fix == "" {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	t.Setenv("PYTHONPATH", "")
	if !torchtest.Installed(DefaultPython) {
		if _, err := Check(t.Context(), o); err == nil || err.(*Error).Code != codeTorch {
			t.Errorf("without torch: %v", err)
		}
	}
}
