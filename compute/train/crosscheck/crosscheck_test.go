package crosscheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// faulty is a device of the kernels that flips a bit of an output after a step.
type faulty struct {
	exec   *cpu.Exec
	names  []string
	in     map[string]*tensor.Tensor
	step   int
	at     int    // the step, from 0; -1: none
	output string // of which a bit flips
	states int
}

func (f *faulty) Take() bool { return true }
func (f *faulty) Give()      {}

func (f *faulty) Begin(in map[string]*tensor.Tensor, _ int) error {
	f.in, f.step, f.states = map[string]*tensor.Tensor{}, 0, 0
	for n, t := range in {
		f.in[n] = t.Clone()
	}
	return nil
}

func (f *faulty) Step(in, out map[string]*tensor.Tensor) error {
	for n, t := range in {
		f.in[n] = t.Clone()
	}
	got, err := f.exec.Run(f.in)
	if err != nil {
		return err
	}
	if f.step == f.at {
		b := got[f.output].Bytes()
		b[len(b)/2] ^= 1
	}
	for n, t := range out {
		copy(t.Bytes(), got[n].Bytes())
	}
	for _, n := range f.names {
		f.in[n] = got[n]
	}
	f.step++
	return nil
}

func (f *faulty) State(into map[string]*tensor.Tensor) error {
	f.states++
	for n, t := range into {
		copy(t.Bytes(), f.in[n].Bytes())
	}
	return nil
}

// newTask is a job of units of four steps.
func newTask(t *testing.T) (*train.Task, *train.Checkpoint) {
	t.Helper()
	c, err := architecture.Parse("gpt2", map[string]any{"n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 16,
		"vocab_size": 256})
	if err != nil {
		t.Fatal(err)
	}
	step, err := model.TrainStep(c, optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1}, 2, 12)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(strings.Repeat("one and two are three, and four is more; ", 100))
	corpus, err := data.Build([]source.File{{Format: "text", Name: "text", Data: text}}, tokenizer.Bytes(), 0.1)
	if err != nil {
		t.Fatal(err)
	}
	exec, err := cpu.Compile(step, 1)
	if err != nil {
		t.Fatal(err)
	}
	genesis, err := train.Genesis(train.Params(step), c.Init(7), 1)
	if err != nil {
		t.Fatal(err)
	}
	return &train.Task{Step: step, Exec: exec, Corpus: corpus, Spec: &train.Spec{
		Version: 1, Numerics: step.Numerics, Name: "text", Seed: 7, Program: step.Digest(),
		Data: corpus.Manifest(1 << 20).Digest(), Genesis: genesis.Root(), Rounds: 1, Steps: 4, Segment: 2, Units: 8,
		Batch: 2, Length: 12, Rate: train.Rate{Kind: train.Cosine, Peak: 1e-3, Floor: 0.1}, Beta1: 0.9, Beta2: 0.95,
		Exchange: train.Exchange{Codec: "none", Rule: "mean", Outer: "nesterov", Rate: 0.7, Momentum: 0.9},
	}}, genesis
}

// TestUnits demands that a bit that flips in the drawn step is seen, in any output, and that every unit ends in the
// roots of the processor: also with a device that does not err.
func TestUnits(t *testing.T) {
	task, base := newTask(t)
	second, err := cpu.Compile(task.Step, 1)
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[int]bool{}
	for unit := range task.Spec.Units {
		task.Device = nil
		want, err := task.Run(base, unit, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		names := train.StateNames(task.Step)
		inner := &faulty{exec: second, names: names, at: -1}
		d := New(inner, task)
		task.Device = d
		check := func(what string) {
			t.Helper()
			got, err := task.Run(base, unit, nil, nil)
			if err != nil || !slices.Equal(got.Segments, want.Segments) || !slices.Equal(got.Losses, want.Losses) ||
				!slices.Equal(got.Norms, want.Norms) || !slices.Equal(train.Roots(got.Delta), train.Roots(want.Delta)) {
				t.Errorf("%s: another result, %v", what, err)
			}
		}
		check("no fault")
		drawn[d.drawn] = true
		if least := 2 + len(names); inner.step != 4 || inner.states < least {
			t.Errorf("unit %d: %d steps and %d reads of the state, want 4 and %d", unit, inner.step, inner.states, least)
		}
		for _, output := range append([]string{"loss", "grad_norm"}, names[0], names[len(names)-1]) {
			inner.at, inner.output = d.drawn, output
			check(fmt.Sprintf("unit %d, a bit of %s", unit, output))
			if inner.step != d.drawn+1 {
				t.Errorf("unit %d: a bit of %s in step %d is not seen", unit, output, d.drawn)
			}
		}
	}
	if len(drawn) < 3 {
		t.Errorf("the drawn steps are %v of four", drawn)
	}
}

// TestError demands that the error of a step names the element.
func TestError(t *testing.T) {
	err := same("w", tensor.FromF32([]float32{1, 2, 3}, 3), tensor.FromF32([]float32{1, 4, 5}, 3))
	if !errors.Is(err, ErrDiffers) ||
		!strings.Contains(err.Error(), `element 1 of "w" has the bytes 00000040, not 00008040`) {
		t.Error(err)
	}
}
