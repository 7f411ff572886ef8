package hold

import (
	"bytes"
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
	if s.Checkpoint(root, c) != c || s.Checkpoint(root, &train.Checkpoint{Round: 1}) != c {
		t.Error("a checkpoint is held twice")
	}
	if s.Checkpoint(canon.Sum("other"), &train.Checkpoint{}) == c {
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
	var nobody *Shared
	if nobody.Checkpoint(root, c) != c || nobody.State(root, state(), nil) == nil {
		t.Error("who shares nothing has nothing")
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
