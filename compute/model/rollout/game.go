package rollout

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
)

// A game has a group of players for each prompt, all of one model, and stages. In the first one each player answers. In
// each later one a player reads texts of the earlier stages before the prompt, and draws another text: a critique where
// a stage follows, and in the last one a final answer (Gensyn 2025, "RL Swarm"). Texts of all stages are learnt from.

// Limits of Options.
const (
	maxStages = 3
	maxReads  = 16
)

// validGame reports whether games can be played so.
func (r Options) validGame() bool {
	return r.Stages >= 0 && r.Stages <= maxStages && r.Reads >= 0 && r.Reads <= min(maxReads, r.Group) &&
		(r.Stages > 1) == (r.Reads > 0) && !(r.Stages > 1 && len(r.Reward.Judged) > 0) &&
		(!r.Across || r.Stages > 1 && r.Others > 0)
}

// Played is the number of stages.
func (r Options) Played() int { return max(1, r.Stages) }

// First are the options of units that draw for others: of the answers alone where the games are played across them.
func (r Options) First() Options {
	if r.Across {
		r.Stages, r.Reads, r.Across = 1, 0, false
	}
	return r
}

// StagesOf divides the list of a step that learns, which Learnt makes of each stage, into its stages. Texts that the
// step draws itself, those of later stages of games across units, have no scores.
func (r Options) StagesOf(learnt []*graph.Node) [][]*graph.Node {
	each := len(learnt) / r.Played()
	if r.Across {
		each = placesDrawn
	}
	first := len(learnt) - each*(r.Played()-1)
	return append([][]*graph.Node{learnt[:first]}, slices.Collect(slices.Chunk(learnt[first:], each))...)
}

// Room is how many tokens of a sequence are those of texts besides the prompt.
func (r Options) Room() int { return r.Tokens * (1 + r.Reads*(r.Played()-1)) }

// Reading are prompts [n, group, width+earlier*reads*tokens] of a later stage: those of the players of n prompts, given
// the texts [n*group, tokens] of each earlier stage. Player i reads of each stage, the first one first, the texts of
// the players i, i+1, ..., i+reads-1, where the first follows the last. Padding comes first, then these texts, each of
// as many tokens as any, and then the prompt. After the end of a text its end is repeated: nothing else is read.
func (r Options) Reading(prompts Prompts, earlier []*graph.Node) Prompts {
	n, width := prompts.Tokens.Shape().Dim(0), prompts.Tokens.Shape().Dim(1)
	group := r.Group
	var seen []*graph.Node
	for _, texts := range earlier {
		texts = graph.Reshape(r.ended(texts), n, group, -1)
		for k := range r.Reads {
			seen = append(seen, graph.Reshape(rolled(texts, k), n*group, -1))
		}
	}
	whole := graph.Concatenate(append(seen, Repeat(prompts.Tokens, group)), 1)
	columns := whole.Shape().Dim(1)
	column := iota(whole, n*group, columns)
	across := func(x *graph.Node) *graph.Node {
		return graph.ExpandAndBroadcast(x, []int{n * group, columns}, []int{1})
	}
	padding := across(Repeat(prompts.Padding, group))
	from := graph.MaxScalar(graph.Sub(column, padding), 0)
	prompt := graph.GreaterOrEqual(column, graph.AddScalar(padding, columns-width))
	tokens := pick(whole, graph.Where(prompt, column, from))
	return Prompts{Tokens: graph.Reshape(tokens, n, group, columns), Padding: prompts.Padding, Answers: prompts.Answers,
		Counted: prompts.Counted}
}

// ended are texts [rows, tokens] in which each token after the end is the first of the ends.
func (r Options) ended(texts *graph.Node) *graph.Node {
	ends := r.Reward.Ends
	if len(ends) == 0 {
		return texts
	}
	said := graph.GreaterThan(Until(texts, ends), graph.ZerosLike(graph.ConvertDType(texts, dtypes.Float32)))
	return graph.Where(said, texts, graph.MulScalar(graph.OnesLike(texts), ends[0]))
}

// rolled is x [n, group, ...] with the element i+k of a group, after the last the first, in place of element i.
func rolled(x *graph.Node, k int) *graph.Node {
	group := x.Shape().Dim(1)
	if k %= group; k == 0 {
		return x
	}
	return graph.Concatenate([]*graph.Node{graph.Slice(x, graph.AxisRange(), graph.AxisRange(k, group)),
		graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, k))}, 1)
}

// Rows are the prompts [n*group, width] of each text of n groups, and their padding [n*group], of prompts [n, width]
// that a group has together, or [n, group, width].
func Rows(tokens, padding *graph.Node, group int) (rows, paddings *graph.Node) {
	paddings = Repeat(padding, group)
	if tokens.Rank() == 3 {
		return graph.Reshape(tokens, paddings.Shape().Dim(0), -1), paddings
	}
	return Repeat(tokens, group), paddings
}

// OfCritiques are the rewards [n*group] of critiques, each the mean reward of the final answers before which it was
// read, from the rewards [n*group] of these.
func (r Options) OfCritiques(final *graph.Node) *graph.Node {
	group := r.Group
	of := graph.Reshape(final, -1, group)
	sum := of
	for k := 1; k < r.Reads; k++ {
		sum = graph.Add(sum, rolled(of, group*r.Reads-k))
	}
	return graph.Reshape(graph.MulScalar(sum, 1/float64(r.Reads)), -1)
}

// IsCritique reports whether the texts of a stage are no answers.
func (r Options) IsCritique(stage int) bool { return stage > 0 && stage+1 < r.Played() }

// CountedIn is 1 for the tokens of texts [n*group, tokens] of a stage that count, else 0. Of a critique these are all
// up to its end.
func (r Options) CountedIn(stage int, prompts Prompts, texts *graph.Node) *graph.Node {
	if r.IsCritique(stage) {
		return Until(texts, r.Reward.Ends)
	}
	return r.Reward.Counted(prompts, texts)
}

// passedAt lists the tensors of a stage that Passed has.
func (r Options) passedAt(stage, n int) []architecture.Named {
	name := func(what string) string {
		if stage == 0 {
			return what
		}
		return fmt.Sprintf("%s%d", what, stage+1)
	}
	return []architecture.Named{
		{Name: name("answers"), Shape: tensor.Make(tensor.Int32, n, r.Group, r.Tokens)},
		{Name: name("reward"), Shape: tensor.Make(tensor.Float32, n, r.Group)},
		{Name: name("scores"), Shape: tensor.Make(tensor.Float32, n, r.Group, r.Tokens)},
	}
}

// passedOf is the number of the tensors of a stage that Passed has.
const passedOf = 3
