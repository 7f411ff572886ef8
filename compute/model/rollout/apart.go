package rollout

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// Passed lists the tensors that pass from a unit that draws the answers to n prompts to one that learns from them:
// "answers" int32 [n, group, tokens], "reward" float32 [n, group] and "scores" float32 [n, group, tokens], the
// cross-entropy of each token in the policy; where answers are shared also "rows" int32 [n, length+1], the examples of
// the prompts.
func (r Options) Passed(n, length int) []architecture.Named {
	return append([]architecture.Named{
		{Name: "answers", Shape: tensor.Make(tensor.Int32, n, r.Group, r.Tokens)},
		{Name: "reward", Shape: tensor.Make(tensor.Float32, n, r.Group)},
		{Name: "scores", Shape: tensor.Make(tensor.Float32, n, r.Group, r.Tokens)},
	}, r.rows(n, length)...)
}

// Tokens draws the tokens of answers by a key, and keeps the score of each, and the highest of its noisy scores.
type Tokens struct {
	Key             *graph.Node
	Policy          Policy
	highest, scores []*graph.Node
}

// Take draws the i-th token of each answer from logits [n, vocab]: int32 [n].
func (d *Tokens) Take(logits *graph.Node, i int) *graph.Node {
	noisy := d.Policy.Noisy(logits, d.Key, i)
	token := Likeliest(noisy)
	column := func(x *graph.Node) *graph.Node { return graph.Reshape(x, -1, 1) }
	d.highest = append(d.highest, column(graph.ReduceMax(noisy, -1)))
	d.scores = append(d.scores, column(record.CrossEntropy(d.Policy.Logits(logits), token)))
	return token
}

// Scores are the cross-entropies of the tokens that were drawn: float32 [n*group, tokens].
func (d *Tokens) Scores() *graph.Node { return graph.Concatenate(d.scores, 1) }

// Given is Passed for answers [n*group, tokens], their rewards [n*group] and, where they are shared, the examples, and
// after it the highest of the scores with noise that each token was drawn by: float32 [n*group, tokens].
func (d *Tokens) Given(n int, answers, reward *graph.Node, rows ...*graph.Node) []*graph.Node {
	group, length := answers.Shape().Dim(0)/n, answers.Shape().Dim(1)
	out := []*graph.Node{graph.Reshape(answers, n, group, length), graph.Reshape(reward, n, group),
		graph.Reshape(d.Scores(), n, group, length)}
	out = append(append(out, rows...), graph.Concatenate(d.highest, 1))
	for i := range out {
		out[i] = graph.StopGradient(out[i])
	}
	return out
}
