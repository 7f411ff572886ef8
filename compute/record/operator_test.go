package record

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// gradientOf returns a program of loss, a scalar, and its gradients for the parameters, the inputs of the program.
func gradientOf(t *testing.T, loss func(g *graph.Graph) (*node, []*node)) *program.Program {
	t.Helper()
	b := program.NewBuilder()
	values, err := Record(b, func(g *graph.Graph) []*node {
		l, parameters := loss(g)
		return append(one(l), graph.Gradient(l, parameters...)...)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		b.Output(string(rune('a'+i)), v)
	}
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return p.Simplify()
}

// checkGradient compares the gradients with differences of the loss along random directions.
func checkGradient(t *testing.T, p *program.Program, others map[string]*tensor.Tensor) {
	t.Helper()
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*tensor.Tensor{}
	for k, i := range p.Inputs() {
		if in[i.Name] = others[i.Name]; in[i.Name] == nil {
			in[i.Name] = wave(i.Shape, float64(k+1))
		}
	}
	out, err := x.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	next := 1
	for k, i := range p.Inputs() {
		if others[i.Name] != nil {
			continue
		}
		gradient, along := out[string(rune('a'+next))].F32(), wave(i.Shape, float64(k)+7.5).F32()
		next++
		at := func(step float32) float64 {
			moved := map[string]*tensor.Tensor{}
			for name, v := range in {
				moved[name] = v
			}
			moved[i.Name] = in[i.Name].Clone()
			for j, d := range along {
				moved[i.Name].F32()[j] += step * d
			}
			out, err := x.Run(moved)
			if err != nil {
				t.Fatal(err)
			}
			return float64(out["a"].F32()[0])
		}
		const h = 1. / 256
		got, want := 0., (at(h)-at(-h))/(2*h)
		for j, d := range along {
			got += float64(gradient[j]) * float64(d)
		}
		if math.Abs(got-want) > 2e-3*(1+math.Abs(want)) {
			t.Errorf("the loss changes by %v along a direction of %s, the gradient says %v", want, i.Name, got)
		}
	}
}

// wave fills a tensor with values that differ in size and sign.
func wave(s tensor.Shape, frequency float64) *tensor.Tensor {
	t := tensor.New(s)
	for i := range t.F32() {
		t.F32()[i] = float32(math.Mod(float64(i)*frequency*0.7310585, 2) - 1)
	}
	return t
}

func TestGradientsOfOperators(t *testing.T) {
	weigh := func(x *node) *node { // a scalar that depends on every element
		return graph.ReduceAllSum(graph.Mul(x, f32(x.Graph(), "weights", x.Shape().Dimensions...)))
	}
	for name, loss := range map[string]func(g *graph.Graph) (*node, []*node){
		"attention": func(g *graph.Graph) (*node, []*node) {
			q, k, v := f32(g, "q", 2, 4, 70, 3), f32(g, "k", 2, 2, 70, 3), f32(g, "v", 2, 2, 70, 3)
			return weigh(Attention(q, k, v)), []*node{q, k, v}
		},
		"cross-entropy": func(g *graph.Graph) (*node, []*node) {
			x := f32(g, "x", 6, 5)
			return weigh(CrossEntropy(x, input(g, "targets", dtypes.Int32, 6))), one(x)
		},
		"gelu": func(g *graph.Graph) (*node, []*node) {
			x := f32(g, "x", 6, 5)
			return weigh(Gelu(x)), one(x)
		},
		"silu": func(g *graph.Graph) (*node, []*node) {
			x := f32(g, "x", 6, 5)
			return weigh(Silu(x)), one(x)
		},
		"a table that is looked up and used": func(g *graph.Graph) (*node, []*node) {
			x := f32(g, "x", 6, 5)
			rows := graph.Gather(x, graph.InsertAxes(input(g, "targets", dtypes.Int32, 6), -1))
			return weigh(graph.Mul(rows, x)), one(x)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := gradientOf(t, loss)
			others := map[string]*tensor.Tensor{"targets": tensor.FromI32([]int32{0, 4, 2, 2, 1, 3}, 6)}
			for _, i := range p.Inputs() {
				if i.Name == "weights" {
					others["weights"] = wave(i.Shape, 3.3)
				}
			}
			checkGradient(t, p, others)
		})
	}
}

// TestSumsOfRowsStartFromWhatTheyAreAddedTo demands one table for a gradient, not one of zeros, and their sum.
func TestSumsOfRowsStartFromWhatTheyAreAddedTo(t *testing.T) {
	ops, _ := record(t, func(g *graph.Graph) []*node {
		table := f32(g, "table", 7, 3)
		sum := graph.ScatterSum(graph.ZerosLike(table), input(g, "i", dtypes.Int32, 2, 1), f32(g, "u", 2, 3), false, false)
		return one(graph.Add(sum, table))
	})
	if last := ops[len(ops)-1]; !strings.Contains(last, "AddRows [0 ") {
		t.Errorf("the last operator is %q", last)
	}
}

func TestAttentionOfGoMLXIsUnsupported(t *testing.T) {
	_, err := Record(program.NewBuilder(), func(g *graph.Graph) []*node {
		q := f32(g, "q", 1, 1, 4, 2)
		out, _ := graph.BackendFusedScaledDotProductAttention(q, q, q, compute.AxesLayoutBHSD, nil)
		return one(out)
	})
	var bad *UnsupportedError
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), "record.Attention") {
		t.Errorf("got %v", err)
	}
}
