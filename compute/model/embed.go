package model

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/contrast"
	"github.com/starling-network/starling/compute/model/decoder"
	"github.com/starling-network/starling/compute/model/sequence"
	"github.com/starling-network/starling/compute/program"
)

// An Embedder gives vectors to texts, which are rows of tokens.
type Embedder interface {
	// Language is the language model whose hidden states the vectors are of.
	Language() architecture.Config
	// Length is the number of tokens of a text.
	Length() int
	// Vectors maps texts [n, Length()] of int32 to vectors [n, width], each of length 1.
	Vectors(p Parameters, texts *graph.Node) *graph.Node
}

// HiddenOfBoth is Hidden where every token sees those before it and those after it, up to the column last, int32 [n].
func (p Parameters) HiddenOfBoth(c architecture.Config, tokens, last *graph.Node) *graph.Node {
	return decoder.Hidden(c, p.w, tokens, sequence.NewBoth(tokens, last))
}

// Contrast is the task of giving both texts of a pair vectors that are closer than those of other texts of the batch:
// see contrast.Pairs. Batch: "tokens" int32 [b.Sequences, 2+2*Length()+1], of each row a number of the anchor and one
// of the positive, which are equal for equal texts, then both texts; the last token belongs to the next row. All pairs
// of a batch are compared, so b.Micro is 0 or b.Sequences. Metrics of Eval, of the ranks of the positives among the
// pairs of the batch: "recall_at_1" and "recall_at_10", the shares of ranks up to 1 and 10, and "mrr", the mean of
// 1/rank.
func Contrast(n Embedder, b Batch, temperature float64) (Task, error) {
	if b.Sequences < 2 || b.Silent != 0 || b.Micro != 0 && b.Micro != b.Sequences || !(temperature >= 0.001 &&
		temperature <= 100) {
		return Task{}, fmt.Errorf("%w: %d pairs in parts of %d, silent tokens from %d, temperature %v", ErrStep,
			b.Sequences, b.Micro, b.Silent, temperature)
	}
	if err := b.check(); err != nil {
		return Task{}, err
	}
	c, length := n.Language(), n.Length()
	t := taskOf(c, tokenBatch(b.Sequences, 2+2*length+1))
	t.hidden, t.half, t.form = b.Dropout, b.Half, b.Form
	t.Metrics = []string{"recall_at_1", "recall_at_10", "mrr"}
	t.loss = func(w weights, in, _ []*graph.Node) []*graph.Node {
		p := pairsOfTexts(n, w, in[0])
		ranks := p.Ranks()
		mean := func(x *graph.Node) *graph.Node {
			return graph.MulScalar(graph.ReduceAllSum(x), 1/float64(b.Sequences))
		}
		within := func(k float64) *graph.Node {
			limit := graph.MulScalar(graph.OnesLike(ranks), k)
			return mean(graph.ConvertDType(graph.LessOrEqual(ranks, limit), dtypes.Float32))
		}
		return []*graph.Node{p.Loss(temperature), within(1), within(10), mean(graph.Reciprocal(ranks))}
	}
	return t, checkSize(c, 2*b.Sequences, length)
}

// pairsOfTexts are the vectors of a batch of pairs, of which all texts are computed at once.
func pairsOfTexts(n Embedder, w weights, rows *graph.Node) contrast.Pairs {
	count, length := dims(rows)[0], n.Length()
	column := func(from, to int) *graph.Node {
		return graph.Slice(rows, graph.AxisRange(), graph.AxisRange(from, to))
	}
	texts := graph.Reshape(column(2, 2+2*length), 2*count, length)
	vectors := n.Vectors(Parameters{w}, texts)
	each := graph.Reshape(vectors, count, 2, dims(vectors)[1])
	part := func(i int) *graph.Node {
		return graph.Reshape(graph.Slice(each, graph.AxisRange(), graph.AxisRange(i, i+1)), count, dims(vectors)[1])
	}
	return contrast.Pairs{Anchors: part(0), Positives: part(1), AnchorIDs: flat(column(0, 1)),
		PositiveIDs: flat(column(1, 2))}
}

// Vectors returns the program of an embedder. Inputs: "tokens" int32 [rows, Length()] and the tensors "p/<name>";
// output: "vectors" [rows, width].
func Vectors(n Embedder, rows int) (*program.Program, error) {
	if err := checkSize(n.Language(), rows, n.Length()); err != nil {
		return nil, err
	}
	t := taskOf(n.Language(), tokenBatch(rows, n.Length()))
	return t.outputs([]string{"vectors"}, func(w weights, in []*graph.Node) []*graph.Node {
		return []*graph.Node{n.Vectors(Parameters{w}, in[0])}
	})
}
