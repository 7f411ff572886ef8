package train_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// kernels is an executor of the kernels themselves, by the inputs and outputs of the program.
type kernels struct {
	task  *train.Task
	state map[string]*tensor.Tensor
	taken int
	fail  error
}

func (k *kernels) names() []string { return train.StateNames(k.task.Step) }

func (k *kernels) Begin(state []*tensor.Tensor) error {
	k.state = map[string]*tensor.Tensor{}
	for i, n := range k.names() {
		k.state[n] = state[i].Clone()
	}
	return nil
}

func (k *kernels) Step(tokens []int32, _ *tensor.Tensor, lr, c1, c2 float32) (float32, error) {
	if k.taken++; k.fail != nil {
		return 0, k.fail
	}
	k.state["tokens"] = tensor.FromI32(slices.Clone(tokens), int(k.task.Spec.Batch), int(k.task.Spec.Length)+1)
	k.state["lr"], k.state["c1"], k.state["c2"] = tensor.Scalar(lr), tensor.Scalar(c1), tensor.Scalar(c2)
	out, err := k.task.Exec.Run(k.state)
	if err != nil {
		return 0, err
	}
	for _, n := range k.names() {
		k.state[n] = out[n]
	}
	return out["loss"].F32()[0], nil
}

func (k *kernels) State(into []*tensor.Tensor) error {
	for i, n := range k.names() {
		copy(into[i].Bytes(), k.state[n].Bytes())
	}
	return nil
}

// An executor gets the batches, the schedule and the state of the unit: one with the arithmetic of the kernels gives
// the same result, and the checkpoint is not changed.
func TestRunOnAnExecutor(t *testing.T) {
	task, base := newTask(t, tiny, 1)
	root := base.Root()
	want, err := task.Run(base, 1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := &kernels{task: task}
	got, err := task.RunOn(x, base, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Segments, want.Segments) || !slices.Equal(got.Losses, want.Losses) || got.Norms != nil ||
		!slices.Equal(train.Roots(got.Delta), train.Roots(want.Delta)) ||
		!slices.Equal(train.Roots(got.End), train.Roots(want.End)) {
		t.Error("the same arithmetic came to another result")
	}
	if x.taken != int(task.Spec.Steps) || base.Root() != root {
		t.Errorf("%d steps, and the checkpoint is %v, was %v", x.taken, base.Root(), root)
	}
}

// An error of an executor ends the unit with its reason, and values that are not finite are reported as in any other
// unit.
func TestRunOnAnExecutorThatFails(t *testing.T) {
	task, base := newTask(t, tiny, 1)
	broken := errors.New("broken")
	if _, err := task.RunOn(&kernels{task: task, fail: broken}, base, 1, nil); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
	enough := errors.New("enough")
	x := &kernels{task: task}
	if _, err := task.RunOn(x, base, 1, func(uint32, float32) error { return enough }); !errors.Is(err, enough) ||
		x.taken != 1 {
		t.Errorf("%v after %d steps", err, x.taken)
	}
	base.Params[0].F32()[0] = float32(math.Inf(1))
	if r, err := task.RunOn(&kernels{task: task}, base, 1, nil); err != nil || r.Diverged == nil {
		t.Errorf("%+v, %v: want a unit that diverged", r, err)
	}
}
