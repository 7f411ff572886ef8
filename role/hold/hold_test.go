package hold

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/audit"
)

// away keeps all bytes elsewhere.
type away struct{}

func (away) Keep(parts [][]byte) io.ReaderAt { return bytes.NewReader(bytes.Join(parts, nil)) }

func (a away) Room(int64) func(*tensor.Tensor) *tensor.Tensor {
	return func(t *tensor.Tensor) *tensor.Tensor { return tensor.Lend(t.Shape, t.Clone().Bytes(), a) }
}

func (away) Scratch(int64) Scratch { return nil }

func (away) Rest([]byte) {}

func state() []*tensor.Tensor {
	a := tensor.New(tensor.Make(tensor.Float32, 3, 700))
	for i, x := range a.F32() {
		a.F32()[i] = x + float32(i)
	}
	return []*tensor.Tensor{a, tensor.Scalar(5)}
}

func TestEqualThingsAreHeldOnce(t *testing.T) {
	s, root := NewShared(1), canon.Sum("root")
	c := &train.Checkpoint{Round: 1}
	if s.Checkpoint(root, c, nil) != c || s.Checkpoint(root, &train.Checkpoint{Round: 1}, away{}) != c {
		t.Error("a checkpoint is held twice")
	}
	if s.Checkpoint(canon.Sum("other"), &train.Checkpoint{}, away{}) == c {
		t.Error("another checkpoint is the same one")
	}
	if a := s.State(root, state(), nil); s.State(root, state(), nil) != a {
		t.Error("a state is held twice")
	}
	one, two := &train.Task{Spec: &train.Spec{}, Frozen: state()}, &train.Task{Spec: &train.Spec{}, Frozen: state()}
	s.Task(one)
	s.Task(two)
	if one.Frozen[0] != two.Frozen[0] {
		t.Error("frozen tensors are held twice")
	}
	three := &train.Task{Spec: &train.Spec{}}
	loaded := func() error { t.Error("loaded again"); return nil }
	if err := s.Frozen(three, loaded); err != nil || three.Frozen[0] != one.Frozen[0] {
		t.Errorf("frozen tensors are held twice: %v", err)
	}
	four := &train.Task{Spec: &train.Spec{Frozen: root}}
	failed := errors.New("failed")
	if err := s.Frozen(four, func() error { return failed }); err != failed {
		t.Errorf("loaded with %v", err)
	}
	give := func() error { four.Frozen, four.FrozenRoots = state(), train.Roots(state()); return nil }
	if err := s.Frozen(four, give); err != nil || len(four.Frozen) == 0 {
		t.Errorf("not loaded: %v", err)
	}
	five := &train.Task{Spec: &train.Spec{Frozen: root}}
	if err := s.Frozen(five, loaded); err != nil || five.Frozen[0] != four.Frozen[0] || len(five.FrozenRoots) == 0 {
		t.Errorf("frozen tensors are held twice: %v", err)
	}
	var nobody *Shared
	if err := nobody.Frozen(five, func() error { return failed }); err != failed {
		t.Errorf("loaded with %v", err)
	}
	if nobody.Checkpoint(root, c, nil) != c || nobody.State(root, state(), nil) == nil {
		t.Error("who shares nothing has nothing")
	}
}

// A checkpoint is laid outside of memory once, with the same root.
func TestCheckpointsAreLaid(t *testing.T) {
	c := &train.Checkpoint{Round: 2, Names: []string{"a", "b"}, Params: state(), Outer: [][]*tensor.Tensor{state()}}
	s, root := NewShared(1), c.Root()
	laid := s.Checkpoint(root, c, away{})
	if laid.Root() != root || !laid.Params[0].Lent() || !laid.Outer[0][1].Lent() || laid.Names[1] != "b" {
		t.Errorf("laid as %+v", laid)
	}
	if Lay(away{}, laid) != laid || s.Checkpoint(root, c, away{}) != laid {
		t.Error("a checkpoint is laid twice")
	}
	if Lay(nil, c) != c {
		t.Error("laid nowhere")
	}
}

func TestOneUnitAtATime(t *testing.T) {
	s := NewShared(1)
	first, second := &Turn{Shared: s}, &Turn{Shared: s}
	first.Lock()
	begun := make(chan bool)
	go func() {
		second.Lock()
		close(begun)
		second.Unlock()
	}()
	select {
	case <-begun:
		t.Error("two units are computed at a time")
	default:
	}
	first.Unlock()
	<-begun
}

func TestTensorsPutAside(t *testing.T) {
	for _, to := range []Aside{nil, away{}} {
		got, own, err := Put(to, state()).Get()
		if err != nil || own != (to != nil) {
			t.Fatalf("own: %v, %v", own, err)
		}
		for i, x := range state() {
			if got[i].Root() != x.Root() {
				t.Errorf("tensor %d is another", i)
			}
		}
		first, err := Put(to, state()).First(1)
		if err != nil || len(first) != 1 || first[0].Root() != got[0].Root() {
			t.Errorf("the first is %v: %v", first, err)
		}
		rest, own, err := Put(to, state()).Without(1)
		if err != nil || own != (to != nil) || len(rest) != 2 || rest[0] != nil || rest[1].Root() != got[1].Root() {
			t.Errorf("without the first: %v, %v, %v", rest, own, err)
		}
	}
}

func TestSealsOpenFromAside(t *testing.T) {
	s := audit.Subject{}
	near, aside := Seal(nil, 3, state())
	far, away := Seal(away{}, 3, state())
	if aside || !away {
		t.Fatal("put aside where there is no room, or not where there is")
	}
	for k := range byte(16) {
		question := canon.Sum("question", []byte{k})
		want, err := audit.NewSeal(s, near.Trees()).Open(question, near)
		if err != nil {
			t.Fatal(err)
		}
		got, err := audit.NewSeal(s, far.Trees()).Open(question, far)
		if err != nil || !bytes.Equal(canon.MustMarshal(got), canon.MustMarshal(want)) {
			t.Fatalf("question %d: another opening: %v", k, err)
		}
	}
}
