package check

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/check/given"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
)

// logits are those before each token of an answer, by the pass of the checking program.
func logits(t *testing.T, c architecture.Config, tensors map[string]*tensor.Tensor, a given.Answer,
	length int) []float32 {
	t.Helper()
	b := program.NewBuilder()
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		text := graph.Parameter(g, given.Text, shapes.Make(dtypes.Int32, length))
		place := graph.Parameter(g, given.Place, shapes.Make(dtypes.Int32, 4))
		_, x := decided{c: c, vocab: c.VocabSize()}.rows(weightsOf(c, g), text, place)
		return []*graph.Node{x}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Output("logits", values[0])
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	in := a.Inputs(length)
	delete(in, given.Draw)
	delete(in, given.Key)
	for name, w := range tensors {
		in[parts.Param+name] = w
	}
	out, err := x.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return out["logits"].F32()
}

// Logits exposes the logits to tests of another package, which draw answers.
var Logits = logits

// A program is the same wherever it is made, and does not grow with the tokens of a pass.
func TestSizeOfProgram(t *testing.T) {
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"vocab_size": 31, "n_positions": 4096, "n_embd": 24,
		"n_layer": 2, "n_head": 3})
	if err != nil {
		t.Fatal(err)
	}
	var sizes, operators []int
	for _, length := range []int{64, 512, 4096} {
		p, err := Program(c, length, 31, []int32{0, 5})
		if err != nil {
			t.Fatal(err)
		}
		again, err := Program(c, length, 31, []int32{0, 5})
		if err != nil || again.Digest() != p.Digest() {
			t.Errorf("two programs of a length: %v", err)
		}
		other, err := Program(c, length, 31, []int32{0, 6})
		if err != nil || other.Digest() == p.Digest() {
			t.Errorf("one program of two ends: %v", err)
		}
		sizes, operators = append(sizes, len(p.Encode())), append(operators, len(p.Ops))
	}
	t.Logf("%v operators in %v bytes for texts of 64, 512 and 4096 tokens", operators, sizes)
	if operators[1] > operators[0]+20 || operators[2] > 4*operators[1] || sizes[2] > 4*sizes[1] {
		t.Errorf("%v operators in %v bytes", operators, sizes)
	}
}

func TestModelsThatCannotBeChecked(t *testing.T) {
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"vocab_size": 31, "n_positions": 64, "n_embd": 24,
		"n_layer": 2, "n_head": 3})
	if err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func() (*program.Program, error){
		"an odd length":   func() (*program.Program, error) { return Program(c, 65, 31, nil) },
		"no tokens":       func() (*program.Program, error) { return Program(c, 0, 31, nil) },
		"no vocabulary":   func() (*program.Program, error) { return Program(c, 64, 0, nil) },
		"too many tokens": func() (*program.Program, error) { return Program(c, 64, 32, nil) },
	} {
		if _, err := make(); err == nil {
			t.Errorf("%s: a program is made", name)
		}
	}
	w := c.Init(1)
	root, roots, err := Weights(c, w)
	if err != nil || len(roots) != len(c.Tensors()) || root.IsZero() {
		t.Errorf("%d roots, %v", len(roots), err)
	}
	delete(w, c.Tensors()[0].Name)
	if _, _, err := Weights(c, w); err == nil {
		t.Error("weights without a tensor have a root")
	}
}
