// Package rollout is what reinforcement learning adds to the graph of a language model: prompts in columns, the draw of
// tokens, rewards and advantages. It computes no model; package compute/model does, between the draws.
package rollout

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/grade"
	"github.com/starling-network/starling/compute/model/silence"
	"github.com/starling-network/starling/compute/record"
)

// Prompts are n prompts of equal width, each with the right answer. A shorter prompt has padding before its first
// token, so that every answer begins in the same column.
type Prompts struct {
	Tokens  *graph.Node // int32 [n, width]; padding has some token
	Padding *graph.Node // int32 [n]: tokens of padding of each
	Answers *graph.Node // int32 [n, length]: tokens of the answer, then any
	Counted *graph.Node // float32 [n, length]: 1 for tokens of the answer, else 0
}

// NewPrompts reads examples [n, columns] of int32, in which the tokens of the answer alone are not silent: a token from
// the number silent on is. Of a prompt longer than width the last tokens remain, of a longer answer the first ones.
func NewPrompts(examples *graph.Node, silent, width, length int) Prompts {
	n, columns := examples.Shape().Dim(0), examples.Shape().Dim(1)
	spoken, heard := silence.Spoken(examples, silent), silence.Heard(examples, silent)
	column := iota(examples, n, columns)
	none := graph.MulScalar(graph.OnesLike(column), columns)
	begin := graph.ReduceMin(graph.Where(graph.GreaterThan(spoken, graph.ZerosLike(spoken)), column, none), -1)
	begins := func(to int) *graph.Node { return graph.ExpandAndBroadcast(begin, []int{n, to}, []int{1}) }

	from := graph.AddScalar(graph.Add(iota(examples, n, width), begins(width)), -width)
	at := graph.Add(iota(examples, n, length), begins(length))
	inside := graph.ConvertDType(graph.LessThan(at, graph.MulScalar(graph.OnesLike(at), columns)), dtypes.Float32)
	return Prompts{
		Tokens:  pick(heard, graph.MaxScalar(from, 0)),
		Padding: graph.MaxScalar(graph.AddScalar(graph.Neg(begin), width), 0),
		Answers: pick(heard, graph.MinScalar(at, columns-1)),
		Counted: graph.Mul(pick(spoken, graph.MinScalar(at, columns-1)), inside),
	}
}

// iota counts the columns of each row: int32 [rows, columns].
func iota(like *graph.Node, rows, columns int) *graph.Node {
	return graph.Iota(like.Graph(), shapes.Make(dtypes.Int32, rows, columns), 1)
}

// pick takes of each row of x [n, columns] the elements of the given columns [n, m].
func pick(x, columns *graph.Node) *graph.Node {
	n, width, m := x.Shape().Dim(0), x.Shape().Dim(1), columns.Shape().Dim(1)
	row := graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, n, m), 0)
	place := graph.Add(graph.MulScalar(row, width), columns)
	return graph.Reshape(graph.Gather(graph.Reshape(x, n*width, 1), graph.InsertAxes(place, -1)), n, m)
}

// Repeat repeats each row of x [n, ...] a number of times: [n*times, ...].
func Repeat(x *graph.Node, times int) *graph.Node {
	dims := x.Shape().Dimensions
	all := append([]int{dims[0], times}, dims[1:]...)
	return graph.Reshape(graph.ExpandAndBroadcast(x, all, []int{1}), append([]int{dims[0] * times}, dims[1:]...)...)
}

// Last are the hidden states of the last m tokens of each of n sequences, from those of all [n*length, width]: [n*m,
// width].
func Last(x *graph.Node, n, m int) *graph.Node {
	length := x.Shape().Dim(0) / n
	x = graph.Slice(graph.Reshape(x, n, length, -1), graph.AxisRange(), graph.AxisRange(length-m, length))
	return graph.Reshape(x, n*m, -1)
}

// Texts are n prompts, each with its group of answers [n*group, length] up to the tokens that count, as rows of tokens
// that begin with the prompt: int32 [n*group, width+length]. Columns after a text have the token pad.
func (p Prompts) Texts(answers, counted *graph.Node, pad int) *graph.Node {
	n, width := p.Tokens.Shape().Dim(0), p.Tokens.Shape().Dim(1)
	rows, length := answers.Shape().Dim(0), answers.Shape().Dim(1)
	whole := graph.Concatenate([]*graph.Node{Repeat(p.Tokens, rows/n), answers}, 1)
	padding := Repeat(p.Padding, rows/n)
	across := func(x *graph.Node) *graph.Node {
		return graph.ExpandAndBroadcast(x, []int{rows, width + length}, []int{1})
	}
	column := iota(answers, rows, width+length)
	text := pick(whole, graph.MinScalar(graph.Add(column, across(padding)), width+length-1))
	said := graph.ConvertDType(graph.ReduceSum(counted, -1), dtypes.Int32)
	size := graph.Sub(graph.AddScalar(said, width), padding)
	none := graph.MulScalar(graph.OnesLike(text), pad)
	return graph.Where(graph.LessThan(column, across(size)), text, none)
}

// Draw draws a token for each row of logits [n, vocab] from the policy: int32 [n]. It is the highest of the logits
// divided by the temperature plus noise (Gumbel 1954), the first one of equals, in the nucleus if there is one. The
// noise is that of record.Gumbel; each draw of a step has a site of its own.
func (p Policy) Draw(logits, key *graph.Node, site int) *graph.Node {
	return Likeliest(p.Noisy(logits, key, site))
}

// Noisy are the scores of which Draw takes the highest: those of a row [n, vocab].
func (p Policy) Noisy(logits, key *graph.Node, site int) *graph.Node {
	logits = graph.StopGradient(logits)
	noisy := graph.Add(graph.MulScalar(logits, 1/p.Temperature), record.Gumbel(logits, key, site))
	if !p.truncates() {
		return noisy
	}
	return kept(p.outside(logits), noisy)
}

// Likeliest is the token with the highest score of each row of scores [n, vocab], the first one of equals: int32 [n].
func Likeliest(scores *graph.Node) *graph.Node {
	n, vocab := scores.Shape().Dim(0), scores.Shape().Dim(1)
	most := graph.ExpandAndBroadcast(graph.ReduceMax(scores, -1), []int{n, vocab}, []int{1})
	ids := iota(scores, n, vocab)
	last := graph.MulScalar(graph.OnesLike(ids), vocab-1) // also where a score is not a number
	return graph.ReduceMin(graph.Where(graph.Equal(scores, most), ids, last), -1)
}

// Until is 1 for the tokens of answers [n, length] up to the first that is one of ends, which is included, else 0:
// float32 [n, length].
func Until(answers *graph.Node, ends []int) *graph.Node {
	length := answers.Shape().Dim(1)
	none := graph.ZerosLike(graph.ConvertDType(answers, dtypes.Float32))
	ended := none
	for _, e := range ends {
		is := graph.Equal(answers, graph.MulScalar(graph.OnesLike(answers), e))
		ended = graph.Max(ended, graph.ConvertDType(is, dtypes.Float32))
	}
	row := graph.Iota(answers.Graph(), shapes.Make(dtypes.Int32, length, length), 0)
	before := graph.ConvertDType(graph.LessThan(row, iota(answers, length, length)), dtypes.Float32)
	earlier := graph.DotGeneral(ended, []int{1}, nil, before, []int{0}, nil) // ends before each token
	return graph.ConvertDType(graph.Equal(earlier, none), dtypes.Float32)
}

// Reward has the weights of the parts of a reward, relative to each other, or a rule.
type Reward struct {
	Exact  float64 // 1 for the right answer, else 0
	Prefix float64 // the share of the tokens of the right answer before the first wrong one

	// Rule is the bytes of a grade.Rule, by which answers are rewarded in place of these weights. An answer then ends with
	// the first token of Ends, which counts, and the rule compares it with the tokens after the prompt of an example.
	Rule []byte
	Ends []int

	// Judged are the weights of the scores of reward models, relative to Ruled, that of the rule. They reward answers
	// together with the rule, or without one.
	Judged []float64
	Ruled  float64
}

// Valid reports whether something is rewarded, by weights, or by a rule and by reward models.
func (w Reward) Valid() bool {
	for _, each := range w.Judged {
		if !(each > 0) || (w.Ruled > 0) != (w.Rule != nil) {
			return false
		}
	}
	return w.Exact >= 0 && w.Prefix >= 0 && (w.Exact+w.Prefix > 0) != w.Texts()
}

// Texts reports whether answers are rewarded as texts, and not by a comparison of their tokens.
func (w Reward) Texts() bool { return w.Rule != nil || len(w.Judged) > 0 }

// Of is the reward of each of a number of answers [n*group, length] to the n prompts of examples [n, columns+1]:
// float32 [n*group], and 1 for tokens that count: float32 [n*group, length]. The last column of an example belongs to
// the next one. scores [n*group] are those of the reward models, in the order of Judged.
func (w Reward) Of(examples *graph.Node, prompts Prompts, answers *graph.Node, scores []*graph.Node) (reward,
	counted *graph.Node) {
	if w.Texts() {
		return w.ofTexts(examples, answers, scores), w.Counted(prompts, answers)
	}
	group := answers.Shape().Dim(0) / examples.Shape().Dim(0)
	counted = w.Counted(prompts, answers)
	reward, _ = w.OfTokens(Hit(answers, Repeat(prompts.Answers, group)), counted)
	return reward, counted
}

// ofTexts is the mean of the reward by the rule and of the scores, by their weights. A score counts as one between
// -grade.MaxReward and grade.MaxReward.
func (w Reward) ofTexts(examples, answers *graph.Node, scores []*graph.Node) (sum *graph.Node) {
	all := w.Ruled
	for _, each := range w.Judged {
		all += each
	}
	if w.Rule != nil {
		rows := graph.Slice(examples, graph.AxisRange(), graph.AxisRange(0, examples.Shape().Dim(1)-1))
		if sum = record.Grade(w.Rule, rows, answers); len(scores) == 0 {
			return sum
		}
		sum = graph.MulScalar(sum, w.Ruled/all)
	}
	for i, score := range scores {
		bounded := within(number(score), -grade.MaxReward, grade.MaxReward)
		if part := graph.MulScalar(bounded, w.Judged[i]/all); sum == nil {
			sum = part
		} else {
			sum = graph.Add(sum, part)
		}
	}
	return sum
}

// Counted is 1 for the tokens of answers [n*group, length] to n prompts that count, else 0: float32 [n*group, length].
func (w Reward) Counted(prompts Prompts, answers *graph.Node) *graph.Node {
	if w.Texts() {
		return Until(answers, w.Ends)
	}
	return Repeat(prompts.Counted, answers.Shape().Dim(0)/prompts.Counted.Shape().Dim(0))
}

// Measured is 1 less the mean reward of answers, the share of those with a reward of at least 1, and the mean reward,
// of the rewards [n] of all answers.
func Measured(reward *graph.Node) []*graph.Node {
	full := graph.ConvertDType(graph.GreaterOrEqual(reward, graph.OnesLike(reward)), dtypes.Float32)
	mean := func(x *graph.Node) *graph.Node {
		return graph.MulScalar(graph.ReduceAllSum(x), 1/float64(x.Shape().Dim(0)))
	}
	return []*graph.Node{mean(graph.OneMinus(reward)), mean(full), mean(reward)}
}

// OfTokens is the reward by weights of answers of which hit [n, length] is 1 where a token is right, from 0 to 1:
// float32 [n]. Tokens after as many as the right answer has do not count. exact is the first part of it alone.
func (w Reward) OfTokens(hit, counted *graph.Node) (reward, exact *graph.Node) {
	length := hit.Shape().Dim(1)
	wrong := graph.Mul(counted, graph.OneMinus(hit))
	zero := func(x *graph.Node) *graph.Node {
		return graph.ConvertDType(graph.Equal(x, graph.ZerosLike(x)), dtypes.Float32)
	}
	row := graph.Iota(hit.Graph(), shapes.Make(dtypes.Int32, length, length), 0)
	upTo := graph.ConvertDType(graph.LessOrEqual(row, iota(hit, length, length)), dtypes.Float32)
	right := zero(graph.DotGeneral(wrong, []int{1}, nil, upTo, []int{0}, nil)) // 1 up to the first wrong token
	share := graph.Div(graph.ReduceSum(graph.Mul(right, counted), -1),
		graph.MaxScalar(graph.ReduceSum(counted, -1), 1))
	exact = zero(graph.ReduceSum(wrong, -1))
	all := w.Exact + w.Prefix
	return graph.Add(graph.MulScalar(exact, w.Exact/all), graph.MulScalar(share, w.Prefix/all)), exact
}

// Hit is 1 where the tokens [n, length] are those of the right answers, else 0.
func Hit(tokens, answers *graph.Node) *graph.Node {
	return graph.ConvertDType(graph.Equal(tokens, answers), dtypes.Float32)
}

// Divergence estimates the divergence from another model for drawn tokens; own and others are their cross-entropies in
// the model that drew them and in the other. It is r - log r - 1 for the ratio r of the other's probability to the own
// (Schulman 2020; Shao et al. 2024, "DeepSeekMath", equation 4): 0 where both agree, and never negative. Only own has a
// gradient. A log r above maxLog counts as that much, without a gradient: a policy draws no such token, and its
// probability in the other model would be no number.
func Divergence(own, others *graph.Node) *graph.Node {
	log := graph.MinScalar(graph.Sub(own, graph.StopGradient(others)), maxLog)
	return graph.AddScalar(graph.Sub(graph.Exp(log), log), -1)
}

// maxLog is the highest logarithm of a ratio of probabilities that is computed.
const maxLog = 20

// leastDeviation is added to the deviation that rewards are divided by.
const leastDeviation = 1e-4

// Advantages are by how much the rewards [n, group] of the answers to a prompt are above their mean, in units of their
// deviation (Shao et al. 2024, "DeepSeekMath", section 4.1.2): 0 where all are equal.
func Advantages(rewards *graph.Node) *graph.Node {
	shape := rewards.Shape().Dimensions
	mean := func(x *graph.Node) *graph.Node {
		x = graph.MulScalar(graph.ReduceSum(x, -1), 1/float64(shape[1]))
		return graph.ExpandAndBroadcast(x, shape, []int{1})
	}
	above := graph.Sub(rewards, mean(rewards))
	deviation := graph.Sqrt(mean(graph.Mul(above, above)))
	differ := graph.GreaterThan(graph.ReduceMax(rewards, -1), graph.ReduceMin(rewards, -1))
	differs := graph.ExpandAndBroadcast(graph.ConvertDType(differ, dtypes.Float32), shape, []int{1})
	of := graph.Div(above, graph.AddScalar(deviation, leastDeviation))
	return graph.StopGradient(graph.Mul(of, differs)) // a mean of equal rewards may be rounded to another number
}
