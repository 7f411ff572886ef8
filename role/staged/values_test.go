package staged

import (
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/protocol/run/terms"
)

// pair is a plan of two stages, the first of which sends two values.
func pair() (*stages.Plan, terms.Link) {
	p := &stages.Plan{Micro: 1, Stages: make([]stages.Stage, 2)}
	for v := range int32(2) {
		p.Transfers = append(p.Transfers, stages.Transfer{Value: v, To: 1, After: order.Task{Phase: order.Forward},
			Shape: tensor.Make(tensor.Float32, 2)})
	}
	return p, terms.Link{To: 1}
}

func TestBothSidesKeepTheSameBytes(t *testing.T) {
	p, l := pair()
	v := newValues()
	for i := range int32(2) {
		v.put(0, i, tensor.FromF32([]float32{float32(i), 3}, 2))
	}
	b, err := v.bytes(p, l, 0)
	if err != nil || len(b) != 16 {
		t.Fatal(len(b), err)
	}
	other := newValues()
	if err := other.read(p, l, 0, b); err != nil {
		t.Fatal(err)
	}
	if again, err := other.bytes(p, l, 0); err != nil || string(again) != string(b) {
		t.Errorf("%x of %x, %v", again, b, err)
	}
	if _, err := other.inputs(p, 1, 1); err == nil {
		t.Error("there are values of another step")
	}
	for _, wrong := range [][]byte{b[:15], append(b, 0), nil} {
		if newValues().read(p, l, 0, wrong) == nil {
			t.Errorf("%d bytes are taken", len(wrong))
		}
	}
}

func FuzzValues(f *testing.F) {
	p, l := pair()
	f.Add(make([]byte, 16))
	f.Add(canon.MustMarshal(Record{Links: [][][]byte{{{1}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if newValues().read(p, l, 0, b) == nil && len(b) != 16 {
			t.Errorf("%d bytes are the values of a step", len(b))
		}
		_, _ = decodeRecord(b)
	})
}
