package model

import (
	"fmt"
	"maps"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/decoder"
	"github.com/starling-network/starling/compute/model/silence"
	"github.com/starling-network/starling/compute/record"
)

// Reference is the prefix of the names of frozen tensors that are those of the model before it is trained.
const Reference = "reference/"

// Preference is direct preference optimisation (Rafailov et al. 2023, equation 7) with the strength beta.
//
// A sequence of the batch is a pair: two texts of b.Length tokens, the preferred one first. Batch: "tokens" int32
// [b.Sequences, 2*b.Length+1], of which the last of a row belongs to the next pair; tokens that are not of an answer,
// and the first of each text, are silent. The gain of an answer is the sum of the log-probabilities of its tokens, less
// that sum under the reference model, which is the model without its adapter, or the frozen tensors under Reference.
// The margin of a pair is beta times the difference of the gains; the loss is the mean of -log sigmoid(margin), ln 2
// where both models agree. Metrics of Eval: "accuracy", the share of pairs with a margin above 0, and "margin", the
// mean of the margins.
func Preference(c architecture.Config, b Batch, beta float64) (Task, error) {
	if !(beta > 0 && beta <= 1e3) || b.Silent == 0 {
		return Task{}, fmt.Errorf("%w: preferences with beta %v and silent tokens from %d", ErrStep, beta, b.Silent)
	}
	if err := b.check(); err != nil {
		return Task{}, err
	}
	t := taskOf(c, tokenBatch(b.Sequences, 2*b.Length+1))
	t.micro, t.half, t.form, t.hidden = b.Micro, b.Half, b.Form, b.Dropout
	t.Metrics = []string{"accuracy", "margin"}
	t.Frozen = append(t.Frozen, referenceOf(c)...)
	t.loss = func(w weights, in, whole []*graph.Node) []*graph.Node {
		p := pairsOf(in[0], b)
		gain := graph.Sub(p.logProbs(c, w), graph.StopGradient(p.logProbs(c, referenceIn(w))))
		return ranked(graph.MulScalar(lead(gain), beta), whole)
	}
	return t, checkSize(c, b.Sequences, b.Length)
}

// lead is how far the first of two numbers is above the second: [rows, 2] to [rows, 1].
func lead(x *graph.Node) *graph.Node {
	first := graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, 1))
	return graph.Sub(first, graph.Slice(x, graph.AxisRange(), graph.AxisRange(1)))
}

// ranked are the loss of pairs with the given margins, the share of those above 0, and the mean margin.
func ranked(margin *graph.Node, whole []*graph.Node) []*graph.Node {
	won := graph.ConvertDType(graph.GreaterThan(margin, graph.ZerosLike(margin)), dtypes.Float32)
	loss := mean(record.Softplus(graph.Neg(margin)), whole)
	return []*graph.Node{loss, mean(won, whole), mean(margin, whole)}
}

// pairs are texts, two a row of a batch: [2*rows, length].
type pairs struct {
	seen, next *graph.Node
	spoken     *graph.Node // 1 for each of next that counts, of type float32
}

func pairsOf(tokens *graph.Node, b Batch) pairs {
	rows := 2 * dims(tokens)[0]
	_, marked := shift(tokens)
	seen, next := shift(silence.Heard(tokens, b.Silent))
	return pairs{graph.Reshape(seen, rows, b.Length), graph.Reshape(next, rows, b.Length),
		graph.Reshape(silence.Spoken(marked, b.Silent), rows, b.Length)}
}

// logProbs are the sums of the log-probabilities of the tokens that count: [rows, 2].
func (p pairs) logProbs(c architecture.Config, w weights) *graph.Node {
	each := graph.Reshape(record.CrossEntropy(decoder.Logits(c, w, p.seen), flat(p.next)), dims(p.next)...)
	return graph.Reshape(graph.Neg(graph.ReduceSum(graph.Mul(each, p.spoken), -1)), dims(p.next)[0]/2, 2)
}

// referenceOf are the frozen tensors of the reference model, which an adapted model has already.
func referenceOf(c architecture.Config) (frozen []architecture.Named) {
	if _, adapted := c.LoRA(); adapted {
		return nil
	}
	for _, n := range c.Tensors() {
		n.Name = Reference + n.Name
		frozen = append(frozen, n)
	}
	return frozen
}

// referenceIn are the weights before training: those under Reference, or those without the adapter. Nothing of them is
// dropped.
func referenceIn(w weights) weights {
	nodes := maps.Clone(w.Nodes)
	for name, node := range w.Nodes {
		if of, ok := strings.CutPrefix(name, Reference); ok {
			nodes[of] = node
		}
		if strings.HasPrefix(name, architecture.AdapterPrefix) {
			delete(nodes, name)
		}
	}
	w.Nodes, w.Dice, w.Dropout, w.Hidden = nodes, nil, 0, 0
	return w
}
