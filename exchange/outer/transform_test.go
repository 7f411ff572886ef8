package outer

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/transform"
	"github.com/starling-network/starling/exchange/update"
)

// Where updates are transformed the frequencies are what is left out, and what counts in the mean: each is averaged
// over those that sent it. A frequency that nothing finite comes back of is refused.
func TestTransformedUpdates(t *testing.T) {
	x := train.Exchange{
		Codec:     codec.TopKName(1, 32),
		Transform: transform.CosineTransform,
		Rule:      aggregate.Contributors,
		Outer:     SGD,
		Rate:      1,
		Feedback:  0.5,
		Carry:     8,
	}
	s := &train.Spec{Rounds: 8, Units: 2, Exchange: x}
	if err := Check(x); err != nil {
		t.Fatal(err)
	}
	base := &train.Checkpoint{Names: []string{"w"}, Params: []*tensor.Tensor{noise(3, 4096)}}
	base.Params[0].Shape = tensor.Make(tensor.Float32, 64, 64)
	waves := func(at map[int]float32) *tensor.Tensor {
		y := tensor.New(base.Params[0].Shape)
		for i, v := range at {
			y.F32()[i] = v
		}
		return transform.Inverse(transform.CosineTransform, y)
	}
	commit := func(unit uint32, delta *tensor.Tensor, from []*tensor.Tensor) ([]*tensor.Tensor, []*tensor.Tensor) {
		u, on, err := Commit(s, base.Names, 0, unit, &train.Result{Delta: []*tensor.Tensor{delta}}, from)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := Unpack(s, base, 0, unit, u.Root(), u.Encode())
		if err != nil {
			t.Fatal(err)
		}
		return sent, on
	}
	apart := func(a, b *tensor.Tensor) (most float64) {
		for i, v := range a.F32() {
			most = max(most, math.Abs(float64(v-b.F32()[i])))
		}
		return most
	}
	one, left := commit(0, waves(map[int]float32{77: 5, 900: 3}), nil)
	two, _ := commit(1, waves(map[int]float32{900: -7}), nil)
	if got := left[0].F32()[900]; len(left) != 1 || math.Abs(float64(got-3)) > 1e-5 ||
		math.Abs(float64(left[0].F32()[77])) > 1e-5 {
		t.Errorf("what is left out of frequency 900 is %v", got)
	}
	next, err := Advance(s, base, [][]*tensor.Tensor{one, two})
	if err != nil {
		t.Fatal(err)
	}
	if d := apart(train.Difference(base.Params[0], next.Params[0]), waves(map[int]float32{77: 5, 900: -7})); d > 1e-5 {
		t.Errorf("the checkpoint is %v away", d)
	}
	if again, _ := commit(0, waves(map[int]float32{77: 1}), left); math.Abs(float64(again[0].F32()[900])-1.5) > 1e-5 {
		t.Errorf("what was left out comes back as %v", again[0].F32()[900])
	}

	huge := tensor.New(base.Params[0].Shape)
	huge.F32()[5] = 1e38
	u, err := update.Pack(x.Codec, 0, 0, []*tensor.Tensor{huge})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Unpack(s, base, 0, 0, u.Root(), u.Encode()); !errors.Is(err, codec.ErrPayload) {
		t.Errorf("a frequency of 1e38: %v", err)
	}
	if bad := (train.Exchange{Codec: codec.Int8, Rule: aggregate.Mean, Outer: SGD, Transform: "fft"}); Check(bad) == nil {
		t.Error("another transform is taken")
	}
}

// Any bytes for frequencies are refused or decode to finite numbers.
func FuzzFrequencies(f *testing.F) {
	x := train.Exchange{
		Codec:     codec.TopKName(40, 1),
		Transform: transform.CosineTransform,
		Rule:      aggregate.Contributors,
		Outer:     SGD,
		Rate:      1,
	}
	s := &train.Spec{Rounds: 1, Units: 2, Exchange: x}
	base := &train.Checkpoint{Names: []string{"w"}, Params: []*tensor.Tensor{noise(3, 40*70)}}
	base.Params[0].Shape = tensor.Make(tensor.Float32, 40, 70)
	u, _, err := Commit(s, base.Names, 0, 0, &train.Result{Delta: base.Params}, nil)
	if err != nil {
		f.Fatal(err)
	}
	honest := u.Payloads[0]
	large := slices.Clone(honest)
	large[len(large)-5] = 0x7e // of the scale, before 28 signs
	for _, seed := range [][]byte{honest, large, honest[1:], nil} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		sent, err := Unpack(s, base, 0, 0, canon.Digest{},
			(&update.Update{Codec: x.Codec, Payloads: [][]byte{payload}}).Encode())
		if err != nil {
			if !errors.Is(err, codec.ErrPayload) {
				t.Fatal(err)
			}
			return
		}
		next, err := Advance(s, base, [][]*tensor.Tensor{sent, sent})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range next.Params[0].F32() {
			if v-v != 0 {
				t.Fatalf("a weight is %v", v)
			}
		}
	})
}
