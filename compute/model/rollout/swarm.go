package rollout

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/grade"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/attention"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// In a swarm a step learns from groups of answers that others drew to prompts of their own, besides its own ones (SAPO,
// Amico et al. 2025, algorithm 1). Groups without signal, in which all rewards are equal, are left out first. Which of
// the others are taken is drawn in the program, by the key of the step.

// Limits of Options.
const (
	maxNodes  = 16
	maxShared = 256
)

// rows are what Passed has besides where answers are shared.
func (r Options) rows(n, length int) []architecture.Named {
	if r.Others == 0 {
		return nil
	}
	return []architecture.Named{{Name: "rows", Shape: tensor.Make(tensor.Int32, n, length+1)}}
}

// Groups are groups of answers with the examples of their prompts.
type Groups struct {
	Rows   *graph.Node // int32 [n, length+1]
	Stages []Stage
	// float32 [n]: 1, or 0 for a group that stands for one that there is not, and is not learnt from
	Taken *graph.Node
}

// Stage are the texts of a stage.
type Stage struct {
	Answers *graph.Node // int32 [n, group, tokens]
	Reward  *graph.Node // float32 [n, group]
	Scores  *graph.Node // float32 [n, group, tokens]: cross-entropies in the policy that drew them
}

// GroupsOf joins the answers of several units, each as Passed lists them, with the examples or without.
func GroupsOf(inputs []*graph.Node, each int) (g Groups) {
	column := func(at int) *graph.Node {
		var list []*graph.Node
		for i := at; i < len(inputs); i += each {
			list = append(list, inputs[i])
		}
		if len(list) == 1 {
			return list[0]
		}
		return graph.Concatenate(list, 0)
	}
	if each%passedOf > 0 {
		g.Rows = column(each - 1)
	}
	for at := 0; at+passedOf <= each; at += passedOf {
		g.Stages = append(g.Stages, Stage{Answers: column(at), Reward: column(at + 1), Scores: column(at + 2)})
	}
	return g
}

// Admitted are groups whose numbers a worker may have made up, with the answers in a vocabulary, the rows in twice as
// many tokens as are not silent, and rewards and scores that are numbers within the bounds of right ones. So a step has
// an output for all that can be committed as answers, and right answers are unchanged.
func (g Groups) Admitted(vocab, silent int) Groups {
	admitted := Groups{Rows: within(g.Rows, 0, float64(2*silent-1)), Taken: g.Taken}
	for _, s := range g.Stages {
		admitted.Stages = append(admitted.Stages, Stage{
			Answers: within(s.Answers, 0, float64(vocab-1)),
			Reward:  within(number(s.Reward), -grade.MaxReward, grade.MaxReward),
			Scores:  within(number(s.Scores), 0, maxScore),
		})
	}
	return admitted
}

// maxScore is more than the cross-entropy of a token that a policy ever draws: one in e^1000.
const maxScore = 1000

// within is x, or the bound that it is outside of.
func within(x *graph.Node, low, high float64) *graph.Node {
	return graph.MaxScalar(graph.MinScalar(x, high), low)
}

// number is x, and 0 where it is not a number.
func number(x *graph.Node) *graph.Node { return graph.Where(graph.Equal(x, x), x, graph.ZerosLike(x)) }

// Draw takes n of the groups that have a stage in which rewards differ, each as likely as another and none twice, by a
// key. If there are fewer, the last ones are not taken.
func (g Groups) Draw(n int, key *graph.Node, site int) (drawn Groups) {
	var differ *graph.Node
	for _, s := range g.Stages {
		of := graph.GreaterThan(graph.ReduceMax(s.Reward, -1), graph.ReduceMin(s.Reward, -1))
		if differ == nil {
			differ = of
		} else {
			differ = graph.LogicalOr(differ, of)
		}
	}
	all := differ.Shape().Dim(0)
	row := func(x *graph.Node) *graph.Node { return graph.Reshape(x, 1, all) }
	number := iota(differ, 1, all)
	like := graph.ZerosLike(graph.ConvertDType(number, dtypes.Float32))
	none := graph.MulScalar(graph.OnesLike(like), attention.Masked)
	scores := graph.Where(row(differ), record.Gumbel(like, key, site), none)
	var places, taken []*graph.Node
	for range n {
		place := Likeliest(scores)
		highest := graph.ReduceMax(scores, -1)
		least := graph.MulScalar(graph.OnesLike(highest), attention.Masked/2)
		taken = append(taken, graph.ConvertDType(graph.GreaterThan(highest, least), dtypes.Float32))
		places = append(places, place)
		same := graph.Equal(number, graph.ExpandAndBroadcast(place, []int{1, all}, []int{1}))
		scores = graph.Where(same, none, scores)
	}
	at := graph.Concatenate(places, 0)
	drawn = Groups{Rows: rowsOf(g.Rows, at), Taken: graph.Concatenate(taken, 0)}
	for _, s := range g.Stages {
		drawn.Stages = append(drawn.Stages, Stage{Answers: rowsOf(s.Answers, at), Reward: rowsOf(s.Reward, at),
			Scores: rowsOf(s.Scores, at)})
	}
	return drawn
}

// rowsOf are the rows of x [n, ...] with the numbers at [m]: [m, ...].
func rowsOf(x, at *graph.Node) *graph.Node {
	dims := append([]int{at.Shape().Size()}, x.Shape().Dimensions[1:]...)
	width := x.Shape().Size() / x.Shape().Dim(0)
	column := graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, dims[0], width), 1)
	first := graph.ExpandAndBroadcast(graph.MulScalar(at, width), []int{dims[0], width}, []int{1})
	place := graph.InsertAxes(graph.Add(first, column), -1)
	return graph.Reshape(graph.Gather(graph.Reshape(x, x.Shape().Size(), 1), place), dims...)
}

// Joined is what is learnt from own answers, of each stage as Learnt lists it with their scores, and then from those of
// others. Those that are not taken have no weight.
func Joined(own, others []*graph.Node, taken *graph.Node) []*graph.Node {
	out := make([]*graph.Node, len(own))
	for i, other := range others {
		if at := i % (ScoresAt + 1); at == WeightAt || at == CountedAt {
			other = weighed(other, taken)
		}
		out[i] = graph.Concatenate([]*graph.Node{own[i], other}, 0)
	}
	return out
}

// weighed are weights [n, group, tokens], or 0 for groups that are not taken [n].
func weighed(x, taken *graph.Node) *graph.Node {
	return graph.Mul(x, graph.ExpandAndBroadcast(taken, x.Shape().Dimensions, []int{1, 2}))
}

// Weigh leaves no weight to groups that are not taken, in what is learnt from a stage as Learnt lists it.
func (g Groups) Weigh(learnt []*graph.Node) []*graph.Node {
	for _, at := range []int{WeightAt, CountedAt} {
		learnt[at] = weighed(learnt[at], g.Taken)
	}
	return learnt
}
