package accelerator

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
	"github.com/starling-network/starling/compute/train"
)

func newTask(t testing.TB, numerics uint32, modelType string, config map[string]any, batch, length,
	steps int) (*train.Task, *train.Checkpoint) {
	t.Helper()
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}
	c, err := architecture.Parse(modelType, config)
	if err != nil {
		t.Fatal(err)
	}
	step, err := model.TrainStep(c, o, batch, length)
	if err != nil {
		t.Fatal(err)
	}
	step = step.In(numerics)
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
)

// TestUnitOnTheDevice demands the roots of the kernels from whole units of small models, and their losses and norms,
// with a child that is killed in the middle of one of them, and one that hangs there.
func TestUnitOnTheDevice(t *testing.T) {
	o := Options{Program: built(t), RunTimeout: time.Second}
	at, d := exact(t, o)
	for name, c := range map[string]struct {
		kind   string
		config map[string]any
		code   string // of the failure of the second unit
		fail   func(*Device)
		in     uint32 // version of the numerics
	}{"gpt2": {"gpt2", tinyGPT2, CodeFailed, func(d *Device) { d.runner.child.Close() }, kernel.Version1},
		"llama":             {"llama", tinyLlama, codeTimeout, func(*Device) { stopChildren(t) }, kernel.Version1},
		"gpt2 in version 2": {"gpt2", tinyGPT2, CodeFailed, func(d *Device) { d.runner.child.Close() }, kernel.Version2},
		"llama in version 2": {"llama", tinyLlama, CodeFailed, func(d *Device) { d.runner.child.Close() },
			kernel.Version2}} {
		if name != "llama" && !*long {
			continue
		}
		t.Run(name, func(t *testing.T) {
			task, base := newTask(t, c.in, c.kind, c.config, 3, 24, 8)
			want, err := task.Run(base, 1, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			var failed []error
			device := New(t.Context(), o, at, task.Step, func(err error) { failed = append(failed, err) })
			defer device.Close()
			task.Device = device
			for _, code := range []string{"", c.code} {
				failed = nil
				got, err := task.Run(base, 1, nil, func(step uint32, _ float32) error {
					if code != "" && step == 5 && device.runner != nil {
						c.fail(device)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got.Segments, want.Segments) || !slices.Equal(got.Losses, want.Losses) ||
					!slices.Equal(got.Norms, want.Norms) || !slices.Equal(train.Roots(got.Delta), train.Roots(want.Delta)) {
					t.Errorf("%s: segments %v, want %v; losses %v, want %v", d.Name, got.Segments, want.Segments, got.Losses,
						want.Losses)
				}
				said := ""
				if len(failed) > 0 {
					said = failed[0].(*Error).Code
				}
				if said != code {
					t.Errorf("the device failed: %v, want %q", failed, code)
				}
			}
		})
	}
}

// stopChildren stops the processes of this one that are starling-device.
func stopChildren(t *testing.T) {
	stopped := 0
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
		}
		var pid, parent int
		var name, state string
		if _, err := fmt.Sscan(string(text), &pid, &name, &state, &parent); err != nil {
			continue // of a name with a space
		}
		if parent == os.Getpid() && strings.HasPrefix(name, "(starling-device") {
			stopped++
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Error(err)
			}
		}
	}
	if stopped == 0 {
		t.Error("there is no child to stop")
	}
}
