package train_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// Two units, of which the second begins with the parameters and the moments that the first ends with, are one unit of
// all their steps, to the bit.
func TestMomentsThatLast(t *testing.T) {
	task, base := newTask(t, tiny, 1)
	whole, spec := *task, *task.Spec
	spec.Rounds, spec.Steps = 1, 10
	whole.Spec = &spec
	want, err := whole.Run(base, 1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	task.Spec.Exchange.Carry, task.Spec.Exchange.Moments = 2, true
	if err := task.Spec.Check(); err != nil {
		t.Fatal(err)
	}
	first, err := task.Run(base, 1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := len(base.Params)
	next := &train.Checkpoint{Round: 1, Names: base.Names, Params: first.End[:n], Outer: base.Outer}
	got, err := task.Run(next, 1, first.End[n:], nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range got.End {
		if x.Root() != want.End[i].Root() {
			t.Errorf("tensor %d of the last state is another", i)
		}
	}
	if !slices.Equal(slices.Concat(first.Losses, got.Losses), want.Losses) {
		t.Error("the losses are others")
	}
	anew, err := task.Run(next, 1, nil, nil)
	if err != nil || anew.Segments[0] == got.Segments[0] {
		t.Errorf("a unit to which nothing is handed on begins with the same state: %v", err)
	}
	if _, err := task.Run(next, 1, first.End, nil); err == nil {
		t.Error("more is handed on than there is, and taken")
	}
}

func TestSplit(t *testing.T) {
	from := make([]*tensor.Tensor, 6)
	for i := range from {
		from[i] = tensor.Scalar(float32(i))
	}
	for _, c := range []struct {
		x             train.Exchange
		from          []*tensor.Tensor
		left, moments []*tensor.Tensor
	}{
		{train.Exchange{Feedback: 1}, from[:2], from[:2], nil},
		{train.Exchange{Moments: true}, from[:4], nil, from[:4]},
		{train.Exchange{Fragments: 2, Moments: true}, from, from[:2], from[2:]},
		{train.Exchange{Feedback: 1, Moments: true}, nil, nil, nil},
	} {
		if left, moments := train.Split(c.x, 2, c.from); !slices.Equal(left, c.left) || !slices.Equal(moments, c.moments) {
			t.Errorf("%+v: %d and %d tensors of %d", c.x, len(left), len(moments), len(c.from))
		}
	}
	task, _ := newTask(t, tiny, 1)
	for _, x := range []train.Exchange{{Moments: true}, {Moments: true, Carry: 2, Gradients: true}, {Carry: 2},
		{Moments: true, Carry: 257}} {
		spec := *task.Spec
		if spec.Exchange = x; !errors.Is(spec.Check(), train.ErrSpec) {
			t.Errorf("%+v is taken", x)
		}
	}
}
