package sealed

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/audit"
)

// The seal of a real state opens under its real root, wherever it is asked, and under no other.
func TestSealsOfStates(t *testing.T) {
	var tensors []*tensor.Tensor
	for i, n := range []int{1, 5000, 700} {
		x := tensor.New(tensor.Make(tensor.Float32, n))
		for j := range x.F32() {
			x.F32()[j] = float32(i*10_000 + j)
		}
		tensors = append(tensors, x)
	}
	root := train.StateRoot(9, train.Roots(tensors))
	subject := audit.Subject{Verifier: "vic", Job: "job"}
	state := New(9, tensors)
	seal := audit.NewSeal(subject, state.Trees())
	for k := range 50 {
		question := audit.Question(canon.Sum("beacon", []byte{byte(k)}), subject)
		o, err := seal.Open(question, state)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Check(subject, root, seal.Root(), question, RootFuncs{}); err != nil {
			t.Fatal(err)
		}
		if err := o.Check(subject, train.StateRoot(10, train.Roots(tensors)), seal.Root(), question,
			RootFuncs{}); !errors.Is(err, audit.ErrOpening) {
			t.Errorf("under another root: %v", err)
		}
	}
	for name, shape := range map[string][]byte{
		"garbage":         {0xff},
		"too large":       canon.MustMarshal(tensor.Make(tensor.Float32, 5000)),
		"too small":       canon.MustMarshal(tensor.Make(tensor.Float32, 1)),
		"no such type":    canon.MustMarshal(tensor.Make(77, 1024)),
		"beyond 64 bits":  canon.MustMarshal(tensor.Make(tensor.Float32, 1<<62, 1<<62)),
		"negative extent": canon.MustMarshal(tensor.Make(tensor.Float32, -1)),
	} {
		if _, err := (RootFuncs{}).Tensor(shape, 2, canon.Digest{}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
