// Package check makes the program that checks an answer of a model in one pass: it computes the logits before every
// token of the answer with the bits of compute/generate, decides each token again, and says which is the first that is
// another than was given. The number of its operators does not grow with that of the tokens.
//
// It draws nothing: compute/generate does, by the same rule. It does not say what follows from a wrong token.
package check

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/check/given"
	"github.com/starling-network/starling/compute/model/decoder"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
)

// ErrModel is wrapped by the reasons why answers of a model cannot be checked.
var ErrModel = errors.New("check: answers of this model cannot be checked")

// Program returns the checking program of a model for texts of up to a number of tokens, a multiple of 64. Tokens from
// the number vocab on are not drawn, and one of ends ends a text. Of an adapted model the program has the scale of the
// adapter as a constant, and reads its tensors after those of the model. The error wraps ErrModel.
func Program(c architecture.Config, length, vocab int, ends []int32) (*program.Program, error) {
	if length < 1 || length%piece != 0 || vocab < 1 || vocab > c.VocabSize() {
		return nil, fmt.Errorf("%w: texts of %d tokens, %d of %d in the vocabulary", ErrModel, length, vocab, c.VocabSize())
	}
	b := program.NewBuilder()
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		text := graph.Parameter(g, given.Text, shapes.Make(dtypes.Int32, length))
		place := graph.Parameter(g, given.Place, shapes.Make(dtypes.Int32, 4))
		draw := graph.Parameter(g, given.Draw, shapes.Make(dtypes.Float32, 3))
		key := graph.Parameter(g, given.Key, shapes.Make(dtypes.Int64, 3))
		w := weightsOf(c, g)
		return []*graph.Node{decided{c: c, vocab: vocab, ends: ends}.wrong(w, text, place, draw, key)}
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	b.Output(given.Wrong, values[0])
	p, err := b.Finish()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	p = p.Simplify()
	if n, all := len(parts.Frozen(p)), len(tensorsOf(c)); n != all {
		return nil, fmt.Errorf("%w: the program reads %d of %d tensors", ErrModel, n, all)
	}
	return p, nil
}

// tensorsOf lists the tensors of a model, and then those of its adapter, if it has one.
func tensorsOf(c architecture.Config) []architecture.Named {
	return slices.Concat(c.Tensors(), c.Adapters())
}

// weightsOf makes a parameter of each tensor. An adapter is computed as compute/generate does for one sequence.
func weightsOf(c architecture.Config, g *graph.Graph) decoder.Weights {
	parameters := func(list []architecture.Named) map[string]*graph.Node {
		nodes := map[string]*graph.Node{}
		for _, n := range list {
			nodes[n.Name] = graph.Parameter(g, parts.Param+n.Name, shapes.Make(dtypes.Float32, n.Shape.Dims...))
		}
		return nodes
	}
	w := decoder.Weights{Nodes: parameters(c.Tensors())}
	if list := c.Adapters(); len(list) > 0 {
		w.Each = []decoder.Own{{Nodes: parameters(list), Scale: graph.Const(g, float32(c.Scale()))}}
	}
	return w
}

// Weights is the root of the weights of a model, of which the tensors are given by name, with those of its adapter, if
// it has one, and the roots of the tensors. All of them are float32. The error wraps ErrModel.
func Weights(c architecture.Config, tensors map[string]*tensor.Tensor) (root canon.Digest, roots []canon.Digest,
	err error) {
	roots, err = rootsOf(tensorsOf(c), tensors)
	return canon.NewTree(roots).Root(), roots, err
}

// Adapted is Weights of an adapted model, of which the roots of the tensors without the adapter are known.
func Adapted(c architecture.Config, base []canon.Digest, adapter map[string]*tensor.Tensor) (root canon.Digest,
	roots []canon.Digest, err error) {
	roots, err = rootsOf(c.Adapters(), adapter)
	roots = slices.Concat(base, roots)
	return canon.NewTree(roots).Root(), roots, err
}

func rootsOf(list []architecture.Named, tensors map[string]*tensor.Tensor) (roots []canon.Digest, _ error) {
	for _, n := range list {
		t := tensors[n.Name]
		if t == nil || !t.Shape.Equal(n.Shape) {
			return nil, fmt.Errorf("%w: no tensor %q of shape %v", ErrModel, n.Name, n.Shape)
		}
		roots = append(roots, t.Root())
	}
	return roots, nil
}
