package copied

import (
	"flag"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/exampleloss"
	"github.com/starling-network/starling/compute/model/tokenloss"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
)

const (
	width, units, heads, vocab, rowsOf, length = 32, 64, 4, 64, 4, 16
)

type weights = map[string]*tensor.Tensor

// seed of the samples.
// Without this flag fewer independent models are trained, and none for hundreds of steps.
var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "train all models, as .ci/run does")

var seed = canon.Sum("seed")

func config(t testing.TB, family string) architecture.Config {
	t.Helper()
	raw := map[string]any{"vocab_size": vocab, "max_position_embeddings": length, "hidden_size": width,
		"intermediate_size": units, "num_hidden_layers": 2, "num_attention_heads": heads, "num_key_value_heads": heads,
		"head_dim": width / heads}
	if family == architecture.GPT2 {
		raw = map[string]any{"vocab_size": vocab, "n_positions": length, "n_embd": width, "n_layer": 2, "n_head": heads,
			"n_inner": units}
	}
	c, err := architecture.Parse(family, raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// example is a text of a language of which all models learn: most tokens follow from the two before.
func example(r *rand.Rand) []uint32 {
	e := []uint32{r.Uint32N(vocab), r.Uint32N(vocab)}
	for len(e) < length+1 {
		next := (3*e[len(e)-1] + 5*e[len(e)-2] + 1) % vocab
		if r.IntN(5) == 0 {
			next = r.Uint32N(vocab)
		}
		e = append(e, next)
	}
	return e
}

// trainer trains models of one family.
type trainer struct {
	t    testing.TB
	c    architecture.Config
	exec *cpu.Exec
}

func newTrainer(t testing.TB, family string) trainer {
	c := config(t, family)
	p, err := tokenloss.Backward(c, tokenloss.Function{}, rowsOf, length)
	if err != nil {
		t.Fatal(err)
	}
	exec, err := cpu.Compile(p, 2)
	if err != nil {
		t.Fatal(err)
	}
	return trainer{t, c, exec}
}

// train trains weights on texts of its own, by Adam.
func (tr trainer) train(w weights, seed uint64, steps int, rate float64) Model {
	tr.t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	w = clone(w)
	in := weights{}
	zero := weights{}
	first, second := map[string][]float64{}, map[string][]float64{}
	one := make([]float32, rowsOf*length)
	for i := range one {
		one[i] = 1. / (rowsOf * length)
	}
	in[tokenloss.Weights] = tensor.FromF32(one, rowsOf, length)
	for _, n := range tr.c.Tensors() {
		zero[tokenloss.Gradient+n.Name] = tensor.New(n.Shape)
		first[n.Name], second[n.Name] = make([]float64, n.Shape.Elements()), make([]float64, n.Shape.Elements())
	}
	for step := range steps {
		a, b := make([]int32, rowsOf*length), make([]int32, rowsOf*length)
		for row := range rowsOf {
			e := example(r)
			for j := range length {
				a[row*length+j], b[row*length+j] = int32(e[j]), int32(e[j+1])
			}
		}
		in[tokenloss.Tokens], in[tokenloss.Targets] = tensor.FromI32(a, rowsOf, length), tensor.FromI32(b, rowsOf, length)
		maps.Copy(in, zero)
		for name, x := range w {
			in[optimizer.Param+name] = x
		}
		out, err := tr.exec.Run(in)
		if err != nil {
			tr.t.Fatal(err)
		}
		for name, x := range w {
			m, v := first[name], second[name]
			for i, g := range out[tokenloss.Gradient+name].F32() {
				m[i] = 0.9*m[i] + 0.1*float64(g)
				v[i] = 0.99*v[i] + 0.01*float64(g)*float64(g)
				k := float64(step + 1)
				x.F32()[i] -= float32(rate * m[i] / (1 - math.Pow(0.9, k)) / (math.Sqrt(v[i]/(1-math.Pow(0.99, k))) + 1e-8))
			}
		}
	}
	return Model{tr.c, w}
}

func clone(w weights) weights {
	out := weights{}
	for name, x := range w {
		y := tensor.New(x.Shape)
		copy(y.F32(), x.F32())
		out[name] = y
	}
	return out
}

// along gives a function each place of a matrix with the number of its unit, which is its row or its column.
func along(x *tensor.Tensor, columns bool, do func(unit, at int)) {
	n := x.Shape.Dims[len(x.Shape.Dims)-1]
	for i := range x.F32() {
		if columns {
			do(i%n, i)
		} else {
			do(i/n, i)
		}
	}
}

// permute gives each unit of a matrix the place that to says.
func permute(x *tensor.Tensor, columns bool, to []int) {
	old := append([]float32{}, x.F32()...)
	n := x.Shape.Dims[len(x.Shape.Dims)-1]
	along(x, columns, func(unit, at int) {
		if columns {
			x.F32()[at-unit+to[unit]] = old[at]
		} else {
			x.F32()[at-unit*n+to[unit]*n] = old[at]
		}
	})
}

func scale(x *tensor.Tensor, columns bool, by []float32, divide bool) {
	along(x, columns, func(unit, at int) {
		if divide {
			x.F32()[at] /= by[unit]
		} else {
			x.F32()[at] *= by[unit]
		}
	})
}

// shuffled is a permutation of groups of units.
func shuffled(r *rand.Rand, units, group int) []int {
	to := make([]int, units)
	for i, g := range r.Perm(units / group) {
		for j := range group {
			to[i*group+j] = g*group + j
		}
	}
	return to
}

// pairs are the layers whose hidden units are in common: the matrices before them, and the one after.
func pairs(family string, layer string) (mlpBefore []string, mlpAfter string, headsBefore []string, headsAfter string) {
	if family == architecture.GPT2 {
		h := "transformer.h." + layer
		return []string{h + ".mlp.c_fc.weight", h + ".mlp.c_fc.bias"}, h + ".mlp.c_proj.weight", nil, ""
	}
	h := "model.layers." + layer
	return []string{h + ".mlp.gate_proj.weight", h + ".mlp.up_proj.weight"}, h + ".mlp.down_proj.weight",
		[]string{h + ".self_attn.q_proj.weight", h + ".self_attn.k_proj.weight", h + ".self_attn.v_proj.weight"},
		h + ".self_attn.o_proj.weight"
}

// cheats change a model in ways that keep what it computes, or nearly so.
func cheats(family string) map[string]func(r *rand.Rand, w weights) {
	layered := func(do func(r *rand.Rand, w weights, layer string)) func(*rand.Rand, weights) {
		return func(r *rand.Rand, w weights) {
			do(r, w, "0")
			do(r, w, "1")
		}
	}
	input := family == architecture.GPT2 // its matrices are [in, out]
	return map[string]func(r *rand.Rand, w weights){
		"equal": func(*rand.Rand, weights) {},
		"permuted": layered(func(r *rand.Rand, w weights, layer string) {
			before, after, headsBefore, headsAfter := pairs(family, layer)
			to := shuffled(r, units, 1)
			for _, name := range before {
				permute(w[name], input, to)
			}
			permute(w[after], !input, to)
			to = shuffled(r, width, width/heads)
			for _, name := range headsBefore {
				permute(w[name], false, to)
			}
			if headsAfter != "" {
				permute(w[headsAfter], true, to)
			}
		}),
		"scaled": layered(func(r *rand.Rand, w weights, layer string) {
			_, after, headsBefore, headsAfter := pairs(family, layer)
			if family == architecture.GPT2 { // values and the projection after them, of the same hidden units
				h := "transformer.h." + layer + ".attn."
				by := make([]float32, 3*width)
				for i := range by {
					if by[i] = 1; i >= 2*width {
						by[i] = float32(math.Exp(r.NormFloat64()))
					}
				}
				scale(w[h+"c_attn.weight"], true, by, false)
				scale(w[h+"c_attn.bias"], true, by, false)
				scale(w[h+"c_proj.weight"], false, by[2*width:], true)
				return
			}
			by := make([]float32, units)
			for i := range by {
				by[i] = float32(math.Exp(r.NormFloat64()))
			}
			scale(w["model.layers."+layer+".mlp.up_proj.weight"], false, by, false)
			scale(w[after], true, by, true)
			scale(w[headsBefore[2]], false, by[:width], false)
			scale(w[headsAfter], true, by[:width], true)
		}),
		"noised": func(r *rand.Rand, w weights) {
			for _, name := range names(w) {
				for i := range w[name].F32() {
					w[name].F32()[i] += float32(1e-4 * r.NormFloat64())
				}
			}
		},
		"merged": func(r *rand.Rand, w weights) { // an adapter of rank 4 in all layers, of a fifth of the size of the weights
			for _, name := range names(w) {
				x := w[name]
				if len(x.Shape.Dims) != 2 || strings.Contains(name, "embed") || strings.Contains(name, "te.weight") {
					continue
				}
				adapt(r, x, 4, 0.2)
			}
		},
	}
}

// names of tensors in a fixed order, for drawn numbers.
func names(w weights) []string { return slices.Sorted(maps.Keys(w)) }

func norm(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

func adapt(r *rand.Rand, x *tensor.Tensor, rank int, size float64) {
	n, m := x.Shape.Dims[0], x.Shape.Dims[1]
	delta := make([]float32, n*m)
	for range rank {
		a, b := make([]float32, n), make([]float32, m)
		for i := range a {
			a[i] = float32(r.NormFloat64())
		}
		for j := range b {
			b[j] = float32(r.NormFloat64())
		}
		for i := range delta {
			delta[i] += a[i/m] * b[i%m]
		}
	}
	by := float32(size * norm(x.F32()) / norm(delta))
	for i := range delta {
		x.F32()[i] += by * delta[i]
	}
}

// All kinds of copies are found among 50 independent models, of which none is a copy of another.
func TestCopies(t *testing.T) {
	independents := map[string]int{architecture.Llama: 50, architecture.GPT2: 6}
	if !*long {
		independents[architecture.Llama] = 16
	}
	for family, n := range independents {
		tr := newTrainer(t, family)
		var all []Model
		for i := range n {
			all = append(all, tr.train(tr.c.Init(uint64(100+i)), uint64(i), 8, 0.01))
		}
		most := 0.0
		for i := range all {
			for j := range i {
				f := Take(all[j], seed).Compare(all[i], nil)
				most = max(most, float64(f.Alike)/float64(f.Compared))
				if f.Copy() {
					t.Errorf("%s: %d is said to be a copy of %d: %+v", family, i, j, f)
				}
			}
		}
		for name, cheat := range cheats(family) {
			r := rand.New(rand.NewPCG(3, 8))
			of := r.IntN(n)
			w := clone(all[of].Tensors)
			cheat(r, w)
			found := 0
			for i := range all {
				f := Take(all[i], seed).Compare(Model{tr.c, w}, nil)
				switch {
				case f.Copy() && i == of:
					found++
				case f.Copy():
					t.Errorf("%s: a copy of %d (%s) is said to be one of %d: %+v", family, of, name, i, f)
				}
				if i == of {
					t.Logf("%s, %s: %+v", family, name, f)
				}
			}
			if found != 1 {
				t.Errorf("%s: a copy is not found: %s", family, name)
			}
		}
		t.Logf("%s: at most %.2f of the matrices of independent models are alike", family, most)
	}
}

// Copies that compute the same have the same losses, and independent models have not.
func TestAlike(t *testing.T) {
	tr := newTrainer(t, architecture.Llama)
	r := rand.New(rand.NewPCG(4, 8))
	examples := make([][]uint32, 60)
	for i := range examples {
		examples[i] = example(r)
	}
	losses := func(w weights) []uint32 {
		l, err := exampleloss.Measure(t.Context(), tr.c, w, examples, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	a, b := tr.train(tr.c.Init(1), 1, 40, 0.01), tr.train(tr.c.Init(2), 2, 40, 0.01)
	original := losses(a.Tensors)
	if Alike(original, losses(b.Tensors)) {
		t.Error("independent models have the same losses")
	}
	for name, cheat := range cheats(architecture.Llama) {
		w := clone(a.Tensors)
		cheat(r, w)
		if Alike(original, losses(w)) != (name != "merged") {
			t.Errorf("%s: the losses", name)
		}
	}
}

// Models that are tuned from one base are no copies of each other, but for what they learnt; without the base they are.
func TestTunedFromOneBase(t *testing.T) {
	tr := newTrainer(t, architecture.Llama)
	base := tr.train(tr.c.Init(9), 9, 40, 0.01)
	var all []Model
	for i := range 6 {
		all = append(all, tr.train(base.Tensors, uint64(20+i), 30, 0.002))
	}
	for i := range all {
		for j := range i {
			if f := Take(all[j], seed).Compare(all[i], &base); f.Copy() {
				t.Errorf("%d is said to be a copy of %d: %+v", i, j, f)
			}
		}
	}
	if !Take(all[0], seed).Compare(all[1], nil).Copy() {
		t.Error("without the base, tuned models are not alike")
	}
	for name, cheat := range cheats(architecture.Llama) {
		if name == "merged" {
			continue // its size is that of the weights, not of the change that was learnt
		}
		w := clone(all[2].Tensors)
		cheat(rand.New(rand.NewPCG(5, 8)), w)
		if f := Take(all[2], seed).Compare(Model{tr.c, w}, &base); !f.Copy() {
			t.Errorf("a copy is not found: %s: %+v", name, f)
		}
		if f := Take(all[3], seed).Compare(Model{tr.c, w}, &base); f.Copy() {
			t.Errorf("%s: another model is accused: %+v", name, f)
		}
	}
}
