package model

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/apart"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/decoder"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/model/sequence"
	"github.com/starling-network/starling/compute/record"
)

// Rollout says how answers are drawn and rewarded.
type Rollout = rollout.Options

// Reinforce is group relative policy optimisation (Shao et al. 2024, "DeepSeekMath", section 4.1), each step of which
// learns from answers that the model of that step draws: so the ratio of the policies is 1, and nothing is clipped.
//
// Batch: "tokens" int32 [b.Sequences, b.Length+1], of each row a prompt, of silent tokens, and the right answer; the
// last token of a row belongs to the next one. A step draws r.Group answers to each prompt by the key Dice, with the
// weights that it then trains: the logits of the draw and those of the loss have the same bits. Of an answer as many
// tokens count as the right one has, or those up to its end if a rule rewards it. The gradient is that of the mean over
// these tokens of advantage times cross-entropy, to which r.KL times the mean divergence from the reference model is
// added (equation 4): see Preference for that model. The loss is 1 less the mean reward.
//
// Where r.Apart is given, the step is two programs in one (package compute/train/parts). One draws answers, and gives
// them with the cross-entropy of each token and their rewards. The other learns from such answers: see rollout.Clipped.
// With r.Others it learns also from r.Shared groups of the answers that these units draw with models of their own
// (rollout.Groups). The loss is then that of the answers of the unit itself.
//
// The loss of Eval is of the answers that the model finds most likely, token by token. Metrics: "accuracy", the share
// of right answers among these, or of rewards of at least 1 if a rule rewards them, and "reward", the mean of them.
//
// judges are reward models of texts of b.Length tokens, one for each weight of r.Reward.Judged; their tensors are
// frozen, under JudgePrefix. An answer is scored with its prompt, up to its end, as Scores scores the same tokens: to
// the bit.
func Reinforce(c architecture.Config, b Batch, r Rollout, judges ...Judge) (Task, error) {
	if err := checkJudges(judges, b, r); err != nil {
		return Task{}, err
	}
	if !r.Valid(b.Length) || b.Silent == 0 || b.Dropout > 0 || r.Shared > 0 && b.Micro > 0 {
		return Task{}, fmt.Errorf("%w: answers as %+v in sequences of %d, silent from %d, dropout %v, %d at a time",
			ErrStep, r, b.Length, b.Silent, b.Dropout, b.Micro)
	}
	if err := b.check(); err != nil {
		return Task{}, err
	}
	t := taskOf(c, tokenBatch(b.Sequences, b.Length+1))
	if t.dropout > 0 {
		return Task{}, fmt.Errorf("%w: answers of a model with dropout %v", ErrStep, t.dropout)
	}
	t.micro, t.half, t.form, t.draws = b.Micro, b.Half, b.Form, true
	t.Metrics = []string{"accuracy", "reward"}
	p := policy{c: c, r: r, width: b.Length - r.Tokens, silent: b.Silent, judges: judges}
	t.prepare, t.loss, t.measure = p.drawn, p.loss, p.measure
	t.drawn = p.shown
	if r.Apart > 0 {
		t.apart = p.apart(b.Sequences, b.Length)
	}
	if r.KL > 0 {
		t.Frozen = append(t.Frozen, referenceOf(c)...)
	}
	t.Frozen = append(t.Frozen, judgeTensors(judges)...)
	return t, checkSize(c, b.Sequences*r.Group, b.Length)
}

// policy draws the answers of a model, and learns from them. A sequence has width columns of a prompt, then the
// answer.
type policy struct {
	c      architecture.Config
	r      Rollout
	width  int
	silent int
	judges []Judge
}

// drawn draws the answers to the prompts of a batch, and rewards them.
func (p policy) drawn(w weights, batch []*graph.Node) []*graph.Node {
	prompts := p.prompts(batch[0])
	n, group := dims(batch[0])[0], p.r.Group
	key := w.Dice.Key
	answers, _ := p.draw(w, prompts, group, func(logits *graph.Node, i int) *graph.Node {
		return p.r.Policy().Draw(logits, key, i)
	})
	reward, counted := p.r.Reward.Of(batch[0], prompts, answers, p.scored(w, prompts, answers))
	return rollout.Learnt(prompts, answers, graph.Reshape(reward, n, group), counted)
}

// draw draws a number of answers to each of n prompts, with the keys and values of earlier tokens remembered: int32
// [n*group, tokens]. Each token is taken from logits [n*group, vocab].
func (p policy) draw(w weights, prompts rollout.Prompts, group int, take func(logits *graph.Node, i int) *graph.Node) (
	answers *graph.Node, logits []*graph.Node) {
	n := dims(prompts.Tokens)[0]
	w.Dice = nil
	s := sequence.NewRagged(prompts.Padding, p.width)
	x := rollout.Last(decoder.Hidden(p.c, w, prompts.Tokens, s), n, 1)
	logits = []*graph.Node{rollout.Repeat(decoder.Output(p.c, w, x), group)}
	s = s.Repeated(group)
	tokens := make([]*graph.Node, p.r.Tokens)
	for i := range tokens {
		tokens[i] = graph.Reshape(take(logits[i], i), n*group, 1)
		if i+1 < len(tokens) {
			s = s.Next()
			logits = append(logits, decoder.Output(p.c, w, decoder.Hidden(p.c, w, tokens[i], s)))
		}
	}
	return graph.Concatenate(tokens, 1), logits
}

// scores are the logits of each token of answers [n, tokens] to prompts [n, width] with some padding [n]: [n*tokens,
// vocab].
func (p policy) scores(w weights, prompts, padding, answers *graph.Node) *graph.Node {
	n, length := dims(answers)[0], dims(answers)[1]
	seen := prompts
	if length > 1 {
		seen = graph.Concatenate([]*graph.Node{prompts,
			graph.Slice(answers, graph.AxisRange(), graph.AxisRange(0, length-1))}, 1)
	}
	w.Dice = nil
	x := decoder.Hidden(p.c, w, seen, sequence.NewRagged(padding, dims(seen)[1]))
	return decoder.Output(p.c, w, rollout.Last(x, n, length))
}

// prompts are those of examples [n, length+1].
func (p policy) prompts(examples *graph.Node) rollout.Prompts {
	rows, _ := shift(examples)
	return rollout.NewPrompts(rows, p.silent, p.width, p.r.Tokens)
}

// loss has the value of 1 less the mean reward, and the gradient of the answers, weighted.
func (p policy) loss(w weights, part, whole []*graph.Node) []*graph.Node {
	group := p.r.Group
	n := dims(part[rollout.AnswersAt])[0] * group
	answers := graph.Reshape(part[rollout.AnswersAt], n, p.r.Tokens)
	score := func(w weights) *graph.Node {
		prompts, padding := rollout.Repeat(part[rollout.PromptsAt], group), rollout.Repeat(part[rollout.PaddingAt], group)
		return p.scores(w, prompts, padding, answers)
	}
	own := score(w)
	each, weight := record.CrossEntropy(p.r.Policy().Logits(own), flat(answers)), flat(part[rollout.WeightAt])
	if len(part) > rollout.ScoresAt {
		weight = rollout.Clipped(weight, flat(part[rollout.ScoresAt]), each)
	}
	reward := part[rollout.RewardAt]
	terms := graph.Mul(each, weight)
	if p.r.KL > 0 {
		others := record.CrossEntropy(p.r.Policy().Among(score(referenceIn(w)), own), flat(answers))
		apart := graph.Mul(rollout.Divergence(each, others), flat(part[rollout.CountedAt]))
		terms = graph.Add(terms, graph.MulScalar(apart, p.r.KL))
	}
	weighted := graph.ReduceAllSum(terms)
	weighted = graph.Div(weighted, graph.MaxScalar(graph.ReduceAllSum(whole[rollout.CountedAt]), 1))
	all := float64(dims(whole[rollout.RewardAt])[0] * group)
	if p.r.Shared > 0 { // the reward is that of the own answers
		reward = graph.Slice(reward, graph.AxisRange(0, dims(reward)[0]-p.r.Shared))
		all = float64(reward.Shape().Size())
	}
	missed := graph.MulScalar(graph.ReduceAllSum(graph.OneMinus(reward)), 1/all)
	return []*graph.Node{graph.Add(weighted, graph.StopGradient(graph.Sub(missed, weighted)))}
}

// measure rewards the answers that are most likely, token by token: up to the first wrong one these are the tokens
// that are most likely after those of the right answer.
func (p policy) measure(w weights, batch []*graph.Node) []*graph.Node {
	prompts := p.prompts(batch[0])
	n := dims(batch[0])[0]
	if p.r.Reward.Texts() { // the reward does not follow from those
		most := func(logits *graph.Node, _ int) *graph.Node { return rollout.Likeliest(logits) }
		answers, _ := p.draw(w, prompts, 1, most)
		reward, _ := p.r.Reward.Of(batch[0], prompts, answers, p.scored(w, prompts, answers))
		return rollout.Measured(reward)
	}
	scores := p.scores(w, prompts.Tokens, prompts.Padding, prompts.Answers)
	hit := graph.Reshape(record.Hits(scores, flat(prompts.Answers)), n, p.r.Tokens)
	reward, exact := p.r.Reward.OfTokens(hit, prompts.Counted)
	mean := func(x *graph.Node) *graph.Node { return graph.MulScalar(graph.ReduceAllSum(x), 1/float64(n)) }
	return []*graph.Node{mean(graph.OneMinus(reward)), mean(exact), mean(reward)}
}

// shown are what Task.Drawn gives.
func (p policy) shown(w weights, batch []*graph.Node) []*graph.Node {
	prompts, d := p.prompts(batch[0]), &rollout.Tokens{Key: w.Dice.Key, Policy: p.r.Policy()}
	answers, logits := p.draw(w, prompts, p.r.Group, d.Take)
	reward, counted := p.r.Reward.Of(batch[0], prompts, answers, p.scored(w, prompts, answers))
	out := []*graph.Node{answers, reward, counted}
	if p.r.KL > 0 {
		repeated := func(x *graph.Node) *graph.Node { return rollout.Repeat(x, p.r.Group) }
		others := p.scores(referenceIn(w), repeated(prompts.Tokens), repeated(prompts.Padding), answers)
		for i := range logits {
			logits[i] = graph.InsertAxes(logits[i], 1)
		}
		own := graph.Reshape(graph.Concatenate(logits, 1), dims(others)...)
		each := record.CrossEntropy(d.Policy.Among(others, own), flat(answers))
		out = append(out, graph.Mul(rollout.Divergence(flat(d.Scores()), each), flat(counted)))
	}
	return out
}

// apart is how answers to n prompts are drawn by other units.
func (p policy) apart(n, length int) *apart.Answers[weights] {
	inputs := p.r.Passed(n, length)
	return &apart.Answers[weights]{Steps: p.r.Apart, Reads: 1 + p.r.Others, Inputs: inputs,
		Draw: func(w weights, batch []*graph.Node) []*graph.Node {
			prompts, d := p.prompts(batch[0]), &rollout.Tokens{Key: w.Dice.Key, Policy: p.r.Policy()}
			answers, _ := p.draw(w, prompts, p.r.Group, d.Take)
			reward, _ := p.r.Reward.Of(batch[0], prompts, answers, p.scored(w, prompts, answers))
			if p.r.Others > 0 {
				return d.Given(n, answers, reward, batch[0])
			}
			return d.Given(n, answers, reward)
		},
		Learn: func(w weights, batch, all []*graph.Node) []*graph.Node {
			vocab := p.c.VocabSize()
			own := p.learnt(rollout.Groups{Rows: batch[0], Answers: all[0], Reward: all[1], Scores: all[2]}.Admitted(vocab,
				p.silent))
			if p.r.Others == 0 {
				return own
			}
			g := rollout.GroupsOf(all[len(inputs):], len(inputs)).Admitted(vocab, p.silent)
			g = g.Draw(p.r.Shared, w.Dice.Key, p.r.Tokens)
			return rollout.Joined(own, p.learnt(g), g.Taken)
		}}
}

// learnt is what is learnt from groups of answers that are admitted.
func (p policy) learnt(g rollout.Groups) []*graph.Node {
	prompts, flat := p.prompts(g.Rows), graph.Reshape(g.Answers, -1, p.r.Tokens)
	return append(rollout.Learnt(prompts, flat, g.Reward, p.r.Reward.Counted(prompts, flat)), g.Scores)
}
