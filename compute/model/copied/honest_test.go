package copied

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/exampleloss"
)

// rounded are weights as a file with bfloat16 has them.
func rounded(m Model) Model {
	w := clone(m.Tensors)
	for _, name := range names(w) {
		for i, x := range w[name].F32() {
			bits := math.Float32bits(x)
			bits += 0x7fff + bits>>16&1
			w[name].F32()[i] = math.Float32frombits(bits &^ 0xffff)
		}
	}
	return Model{m.Config, w}
}

// frozen are the weights of a base in all layers but the projections of attention, which are tuned.
func frozen(tuned, base Model) Model {
	w := clone(base.Tensors)
	for _, layer := range []string{"0", "1"} {
		for _, p := range []string{"q", "v"} {
			name := "model.layers." + layer + ".self_attn." + p + "_proj.weight"
			w[name] = tuned.Tensors[name]
		}
	}
	return Model{base.Config, w}
}

// Models that were tuned from one base on one text, with a small rate or in a few layers, are no copies of each other,
// also where files round their weights: layers that were not tuned are rounded alike, and the gradients of one text
// have common directions.
func TestTunedALittle(t *testing.T) {
	tr := newTrainer(t, architecture.Llama)
	base := tr.train(tr.c.Init(9), 9, 40, 0.01)
	r := rand.New(rand.NewPCG(6, 8))
	examples := make([][]uint32, 60)
	for i := range examples {
		examples[i] = example(r)
	}
	losses := func(m Model) []uint32 {
		l, err := exampleloss.Measure(t.Context(), tr.c, m.Tensors, examples, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for rate, steps := range map[float64]int{0.00003: 300, 0.0003: 60, 0.002: 1} {
		if steps > 100 && !*long {
			continue
		}
		a, b := tr.train(base.Tensors, 20, steps, rate), tr.train(base.Tensors, 21, steps, rate)
		for name, change := range map[string]func(Model) Model{
			"whole": func(m Model) Model { return m }, "rounded": rounded,
			"frozen":             func(m Model) Model { return frozen(m, base) },
			"frozen and rounded": func(m Model) Model { return rounded(frozen(m, base)) },
		} {
			a, b := change(a), change(b)
			if f := Take(a, seed).Compare(b, &base); f.Copy() {
				t.Errorf("a rate of %g, %s: %+v", rate, name, f)
			}
			// one that learnt next to nothing has the losses of the base
			if x := losses(a); name == "whole" && Alike(x, losses(b)) && !Alike(x, losses(base)) {
				t.Errorf("a rate of %g: the same losses", rate)
			}
			w := clone(b.Tensors)
			cheats(architecture.Llama)["scaled"](rand.New(rand.NewPCG(5, 8)), w)
			if f := Take(b, seed).Compare(Model{tr.c, w}, &base); name == "whole" && !f.Copy() {
				t.Errorf("a rate of %g: a copy is not found: %+v", rate, f)
			}
		}
	}
}

// A copy in which some evenly spaced vectors of all matrices are drawn again is found: which are compared is not known
// before.
func TestCopiesThatChangeSomeVectors(t *testing.T) {
	c := config(t, architecture.Llama)
	a := Model{c, c.Init(1)}
	w := clone(a.Tensors)
	r := rand.New(rand.NewPCG(7, 8))
	for _, name := range names(w) {
		x := w[name]
		if len(x.Shape.Dims) != 2 {
			continue
		}
		for _, columns := range []bool{false, true} {
			n := x.Shape.Dims[0]
			if columns {
				n = x.Shape.Dims[1]
			}
			along(x, columns, func(unit, at int) {
				if unit%(n/mostVectors) == 0 {
					x.F32()[at] = float32(0.02 * r.NormFloat64())
				}
			})
		}
	}
	if f := Take(a, seed).Compare(Model{c, w}, nil); !f.Copy() {
		t.Errorf("%+v", f)
	}
}

// Good models of an easy text have almost no loss, and are no copies for that; rounding does not hide a copy.
func TestAlikeWithoutLoss(t *testing.T) {
	a, b, c := make([]uint32, 100), make([]uint32, 100), make([]uint32, 100)
	for i := range a {
		a[i], b[i], c[i] = uint32(300+i), uint32(500+2*i), uint32(301+i)
	}
	if Alike(a, b) || !Alike(a, c) {
		t.Errorf("independent ones %v, rounded ones %v", Alike(a, b), Alike(a, c))
	}
}
