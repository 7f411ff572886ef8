package model

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// taskInputs returns the inputs of the first step of a task.
func taskInputs(task Task, w, batch state, o optimizer.AdamW, lr float64) state {
	in := maps.Clone(batch)
	for name, x := range w {
		in["p/"+name] = x
	}
	for _, n := range task.Trained {
		in["m/"+n.Name], in["v/"+n.Name] = tensor.New(n.Shape), tensor.New(n.Shape)
	}
	setStep(in, o, lr, 1)
	return in
}

// evalInputs are those of the inputs of a step that Eval has.
func evalInputs(task Task, in state) state {
	out := state{}
	for _, n := range task.Batch {
		out[n.Name] = in[n.Name]
	}
	for _, list := range [][]architecture.Named{task.Frozen, task.Trained} {
		for _, n := range list {
			out["p/"+n.Name] = in["p/"+n.Name]
		}
	}
	return out
}

// checkGradients compares the gradients of a task with central differences of the loss: along the gradient of each
// tensor, and for a sample of its entries. With beta1 = 0 and no clipping the first moment after a step is the
// gradient.
func checkGradients(t *testing.T, name string, task Task, w, batch state, h float64) {
	t.Helper()
	o := optimizer.AdamW{Eps: 1e-8}
	p, err := task.TrainStep(o)
	e := mustCompile(t, p, err)
	in := taskInputs(task, w, batch, o, 0)
	out := mustRun(t, e, in)
	loss := func() float64 { return scalar(mustRun(t, e, in)["loss"]) }
	p, err = task.Eval()
	eval := mustRun(t, mustCompile(t, p, err), evalInputs(task, in))
	if eval["loss"].Root() != out["loss"].Root() {
		t.Errorf("%s: the loss is %v in a step, %v in Eval", name, scalar(out["loss"]), scalar(eval["loss"]))
	}
	total := 0.0
	for _, n := range task.Trained {
		grad, data := out["m/"+n.Name].F32(), w[n.Name].F32()
		saved := w[n.Name].Clone().F32()
		slope := func(direction func(i int) float64) float64 {
			at := func(step float64) float64 {
				for i := range data {
					data[i] = float32(float64(saved[i]) + step*direction(i))
				}
				return loss()
			}
			wide, narrow := (at(h)-at(-h))/(2*h), (at(h/2)-at(-h/2))/h
			copy(data, saved)
			return (4*narrow - wide) / 3 // Richardson: without the part in h squared
		}
		norm := 0.0
		for _, g := range grad {
			norm += float64(g) * float64(g)
		}
		total += norm
		norm = math.Sqrt(norm)
		if norm < 1e-3 {
			t.Errorf("%s: gradient of %s is %g, too small to check", name, n.Name, norm)
		}
		along := slope(func(i int) float64 { return float64(grad[i]) / norm })
		checkNear(t, fmt.Sprintf("%s: slope along the gradient of %s", name, n.Name), along, norm, 1e-4+0.01*norm)
		for k := range 4 {
			entry := (k*len(grad)/4 + 7*k) % len(grad)
			got := slope(func(i int) float64 { return unitVector(i, entry) })
			g := float64(grad[entry])
			checkNear(t, fmt.Sprintf("%s: gradient %d of %s", name, entry, n.Name), g, got, 2e-4+0.02*math.Abs(g))
		}
	}
	checkNear(t, name+" gradient norm", scalar(out["grad_norm"]), math.Sqrt(total), 1e-5*math.Sqrt(total))
}

// A example is a task with a batch to run it on.
type example struct {
	task  Task
	batch state
}

func mustTask(t testing.TB, task Task, err error) Task {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func someIDs(seed uint64, below, n int) *tensor.Tensor {
	random, ids := philox.New(seed, 1), make([]int32, n)
	for i := range ids {
		ids[i] = int32(random.Uint64n(uint64(below)))
	}
	return tensor.FromI32(ids, n)
}

// carry makes the outputs of a step the inputs of the next one.
func carry(task Task, in, out state) {
	for _, n := range task.Trained {
		for _, prefix := range []string{"p/", "m/", "v/"} {
			in[prefix+n.Name] = out[prefix+n.Name]
		}
	}
}

func unitVector(i, entry int) float64 {
	if i == entry {
		return 1
	}
	return 0
}

// Eval is the loss of the task Language.
func Eval(c architecture.Config, batch, seqLen int) (*program.Program, error) {
	t, err := Language(c, batch, seqLen)
	if err != nil {
		return nil, err
	}
	return t.Eval()
}
