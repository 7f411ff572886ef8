package tokenloss

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
)

// TestStep compares a step of a network with the programs of a loop on one machine: the same log-probabilities, weights
// and moments, to the bit, for each loss, and for a batch with all of them.
func TestStep(t *testing.T) {
	const rows, length = 3, 6
	adam := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1, DecayAll: true}
	for name, c := range models(t) {
		step, err := Step(c, adam, rows, length)
		if err != nil {
			t.Fatal(err)
		}
		if params := parts.Params(step); len(params) != 3*len(Trained(c))+2 {
			t.Fatalf("%s: parameters %v", name, params)
		}
		if got := parts.Given(step); len(got) != len(Given(rows, length)) {
			t.Fatalf("%s: data %v", name, got)
		}
		for _, f := range functions {
			in := batch(c, random(c), rows, length)
			scalars := state{"lr": tensor.Scalar(0.01), "c1": tensor.Scalar(10), "c2": tensor.Scalar(20)}
			for k, x := range scalars {
				in[k] = x
			}
			for _, n := range Trained(c) {
				in[Gradient+n.Name] = tensor.New(n.Shape)
				in[optimizer.First+n.Name], in[optimizer.Second+n.Name] = tensor.New(n.Shape), tensor.New(n.Shape)
			}
			back, err := Backward(c, f, rows, length)
			want := run(t, back, err, in)
			for _, n := range Trained(c) {
				in[Gradient+n.Name] = want[Gradient+n.Name]
			}
			update, err := Update(c, adam)
			moved := run(t, update, err, in)

			least, most := f.Bounds()
			for k, x := range Remembered(c, rows, length, nil) {
				if in[optimizer.Param+k] == nil {
					in[optimizer.Param+k] = x
				}
			}
			for _, n := range Given(rows, length) {
				x := in[n.Name]
				switch n.Name {
				case Ratio, Least, Most:
					x = tensor.New(n.Shape)
					value := map[string]float32{Least: least, Most: most}[n.Name]
					if n.Name == Ratio && f.Sampled() {
						value = 1
					}
					for i := range x.F32() {
						x.F32()[i] = value
					}
				case Rate:
					x = in["lr"]
				}
				in[DataOf+n.Name] = x
			}
			got := run(t, step, nil, in)
			for i, x := range want[LogProbs].F32() {
				y := LogProb(got["p/"+High].F32()[i], got["p/"+Low].F32()[i])
				if d := math.Abs(float64(x - y)); d > 1./(1<<34) || d > 0 && x <= -1./(1<<11) {
					t.Errorf("%s, %v: log-probability %v is passed on as %v", name, f, x, y)
				}
			}
			if want[Loss].F32()[0] != got[Loss].F32()[0] {
				t.Errorf("%s, %v: the loss is %v, wanted %v", name, f, got[Loss].F32()[0], want[Loss].F32()[0])
			}
			for _, n := range Trained(c) {
				for k, as := range map[string]string{optimizer.Param + n.Name: optimizer.Param + n.Name,
					optimizer.First + n.Name:  optimizer.Param + FirstOf + n.Name,
					optimizer.Second + n.Name: optimizer.Param + SecondOf + n.Name} {
					if !slices.Equal(moved[k].Bytes(), got[as].Bytes()) {
						t.Errorf("%s, %v: %s differs from the one of one machine", name, f, as)
					}
				}
			}
		}
	}
}

// TestStepOfAnyData: tokens that the model does not have, and numbers that are none, have an output.
func TestStepOfAnyData(t *testing.T) {
	for name, c := range models(t) {
		step, err := Step(c, optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, DecayAll: true}, 2, 4)
		in := random(c)
		for k, x := range Remembered(c, 2, 4, nil) {
			if in["p/"+k] == nil {
				in["p/"+k] = x
			}
		}
		for k, x := range Data(2, 4) {
			in[DataOf+k] = x
		}
		for i, token := range []int32{-1, math.MinInt32, math.MaxInt32, int32(c.VocabSize())} {
			in[DataOf+Tokens].I32()[i], in[DataOf+Targets].I32()[7-i] = token, token
		}
		in[DataOf+Weights].F32()[0] = float32(math.NaN())
		in[DataOf+Rate].F32()[0] = float32(math.Inf(1))
		if out := run(t, step, err, in); len(out) == 0 {
			t.Errorf("%s: nothing", name)
		}
	}
}
