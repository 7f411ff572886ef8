package rollout

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/record"
)

// Passed lists the tensors that pass from a unit that draws the answers to n prompts to one that learns from them:
// "answers" int32 [n, group, tokens], "reward" float32 [n, group] and "scores" float32 [n, group, tokens], the
// cross-entropy of each token in the policy; the same of each later stage that these units draw, as "answers2" and so
// on; and where answers are shared "rows" int32 [n, length+1], the examples of the prompts.
func (r Options) Passed(n, length int) (list []architecture.Named) {
	for stage := range r.First().Played() {
		list = append(list, r.passedAt(stage, n)...)
	}
	return append(list, r.rows(n, length)...)
}

// Tokens draws the tokens of texts of a stage by a key, and keeps the score of each, and the highest of its noisy
// scores.
type Tokens struct {
	Key             *graph.Node
	Policy          Policy
	First           int // site of the first token
	highest, scores []*graph.Node
}

// Take draws the i-th token of each text from logits [n, vocab]: int32 [n].
func (d *Tokens) Take(logits *graph.Node, i int) *graph.Node {
	noisy := d.Policy.Noisy(logits, d.Key, d.First+i)
	token := Likeliest(noisy)
	column := func(x *graph.Node) *graph.Node { return graph.Reshape(x, -1, 1) }
	d.highest = append(d.highest, column(graph.ReduceMax(noisy, -1)))
	d.scores = append(d.scores, column(record.CrossEntropy(d.Policy.Logits(logits), token)))
	return token
}

// Scores are the cross-entropies of the tokens that were drawn: float32 [n*group, tokens].
func (d *Tokens) Scores() *graph.Node { return graph.Concatenate(d.scores, 1) }

// Given are the tensors of a stage in Passed, for texts [n*group, tokens] with their rewards, and then one that no unit
// reads: the highest of the scores with noise that each token was drawn by, float32 [n*group, tokens].
func (d *Tokens) Given(n int, texts, reward *graph.Node) []*graph.Node {
	group, length := texts.Shape().Dim(0)/n, texts.Shape().Dim(1)
	out := []*graph.Node{graph.Reshape(texts, n, group, length), graph.Reshape(reward, n, group),
		graph.Reshape(d.Scores(), n, group, length), graph.Concatenate(d.highest, 1)}
	for i := range out {
		out[i] = graph.StopGradient(out[i])
	}
	return out
}

// Passing joins the tensors that Given makes of each stage to those that Passed lists, with the examples where they are
// shared, and adds the one that no unit reads.
func Passing(stages [][]*graph.Node, rows ...*graph.Node) (out []*graph.Node) {
	var highest []*graph.Node
	for _, given := range stages {
		out = append(out, given[:passedOf]...)
		highest = append(highest, given[passedOf])
	}
	out = append(out, rows...)
	if len(highest) == 1 {
		return append(out, highest[0])
	}
	return append(out, graph.Concatenate(highest, 1))
}
