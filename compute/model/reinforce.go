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
// them with the cross-entropy of each token and their rewards. The other learns from such answers: rollout.Correction.
// With r.Others it learns also from r.Shared groups of the answers that these units draw with models of their own
// (rollout.Groups). The loss is then that of the answers of the unit itself.
//
// With r.Stages above 1 a step plays a game with the group of each prompt, and learns from the texts of all stages:
// each follows the texts that rollout.Options.Reading lists, and rollout.Options.OfCritiques is the reward of
// critiques. The advantage of a text is relative to the others of its stage. The loss is that of the first answers.
// With r.Across the games are about the r.Shared groups of others: the step draws the texts of later stages itself,
// after these answers, with the weights that it then trains.
//
// The loss of Eval is of the answers that the model finds most likely, token by token. Metrics: "accuracy", the share
// of right answers among these, or of rewards of at least 1 if a rule rewards them, and "reward", the mean of them.
// In a game also "resolve_reward", that of the final answers of a player whose texts are the most likely ones, and that
// reads them in place of those of others.
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
	if r.Played() > 1 {
		t.Metrics = append(t.Metrics, "resolve_reward")
	}
	p := policy{c: c, r: r, width: b.Length - r.Room(), silent: b.Silent, judges: judges}
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

// policy draws the answers of a model, and learns from them. A sequence has width columns of a prompt, after those of
// the texts of earlier stages, then the answer.
type policy struct {
	c      architecture.Config
	r      Rollout
	width  int
	silent int
	judges []Judge
}

// drawn draws the answers to the prompts of a batch, and rewards them.
func (p policy) drawn(w weights, batch []*graph.Node) (learnt []*graph.Node) {
	n := dims(batch[0])[0]
	for _, s := range p.play(w, batch[0], nil, p.byKey(w)) {
		learnt = append(learnt, rollout.Learnt(s.prompts, s.texts, graph.Reshape(s.reward, n, p.r.Group), s.counted)...)
	}
	return learnt
}

// byKey draws the tokens of each stage by the key of the step.
func (p policy) byKey(w weights) func(stage int) taking {
	key := w.Dice.Key
	return func(stage int) taking {
		return func(logits *graph.Node, i int) *graph.Node {
			return p.r.Policy().Draw(logits, key, stage*p.r.Tokens+i)
		}
	}
}

// taking takes the i-th token of each text from logits [n, vocab].
type taking func(logits *graph.Node, i int) *graph.Node

// played is a stage of n games.
type played struct {
	prompts rollout.Prompts // what is read before the texts
	texts   *graph.Node     // int32 [n*group, tokens]
	logits  []*graph.Node   // of each token: [n*group, vocab]
	reward  *graph.Node     // float32 [n*group]
	counted *graph.Node     // float32 [n*group, tokens]
}

// play draws and rewards the texts of all stages to the prompts of examples [n, length+1], or of those after the first,
// of which the texts [n*group, tokens] are given.
func (p policy) play(w weights, examples, given *graph.Node, take func(stage int) taking) (stages []played) {
	prompts, group := p.prompts(examples), p.r.Group
	var texts []*graph.Node
	for stage := range p.r.Played() {
		s := played{prompts: prompts, texts: given}
		switch {
		case stage == 0 && given == nil:
			s.texts, s.logits = p.draw(w, prompts, group, take(stage))
		case stage > 0:
			s.prompts = p.r.Reading(prompts, texts)
			var each rollout.Prompts
			each.Tokens, each.Padding = rollout.Rows(s.prompts.Tokens, s.prompts.Padding, group)
			s.texts, s.logits = p.draw(w, each, 1, take(stage))
		}
		stages, texts = append(stages, s), append(texts, s.texts)
	}
	for i := range stages {
		switch s := &stages[i]; {
		case i == 0 && given != nil:
		case p.r.IsCritique(i):
			s.counted = p.r.CountedIn(i, prompts, s.texts)
		default:
			s.reward, s.counted = p.r.Reward.Of(examples, prompts, s.texts, p.scored(w, prompts, s.texts))
		}
	}
	for i := range stages {
		if p.r.IsCritique(i) {
			stages[i].reward = p.r.OfCritiques(stages[len(stages)-1].reward)
		}
	}
	if given != nil {
		return stages[1:]
	}
	return stages
}

// draw draws a number of answers to each of n prompts, with the keys and values of earlier tokens remembered: int32
// [n*group, tokens]. Each token is taken from logits [n*group, vocab].
func (p policy) draw(w weights, prompts rollout.Prompts, group int, take taking) (answers *graph.Node,
	logits []*graph.Node) {
	n := dims(prompts.Tokens)[0]
	w.Dice = nil
	s := sequence.NewRagged(prompts.Padding, dims(prompts.Tokens)[1])
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
	var weighted, counted *graph.Node
	all := p.r.StagesOf(whole)
	for stage, of := range p.r.StagesOf(part) {
		sum, count := graph.ReduceAllSum(p.terms(w, of)), graph.ReduceAllSum(all[stage][rollout.CountedAt])
		if stage == 0 {
			weighted, counted = sum, count
			continue
		}
		weighted, counted = graph.Add(weighted, sum), graph.Add(counted, count)
	}
	weighted = graph.Div(weighted, graph.MaxScalar(counted, 1))
	reward, group := part[rollout.RewardAt], p.r.Group
	n := float64(dims(whole[rollout.RewardAt])[0] * group)
	if p.r.Shared > 0 { // the reward is that of the own answers
		reward = graph.Slice(reward, graph.AxisRange(0, dims(reward)[0]-p.r.Shared))
		n = float64(reward.Shape().Size())
	}
	missed := graph.MulScalar(graph.ReduceAllSum(graph.OneMinus(reward)), 1/n)
	return []*graph.Node{graph.Add(weighted, graph.StopGradient(graph.Sub(missed, weighted)))}
}

// terms are the weighted cross-entropies of the tokens of a stage, as rollout.Learnt lists it.
func (p policy) terms(w weights, of []*graph.Node) *graph.Node {
	group := p.r.Group
	n := dims(of[rollout.AnswersAt])[0] * group
	answers := graph.Reshape(of[rollout.AnswersAt], n, p.r.Tokens)
	score := func(w weights) *graph.Node {
		prompts, padding := rollout.Rows(of[rollout.PromptsAt], of[rollout.PaddingAt], group)
		return p.scores(w, prompts, padding, answers)
	}
	own := score(w)
	each, weight := record.CrossEntropy(p.r.Policy().Logits(own), flat(answers)), flat(of[rollout.WeightAt])
	if len(of) > rollout.ScoresAt {
		weight = p.r.Correction.Of(weight, flat(of[rollout.ScoresAt]), each)
	}
	terms := graph.Mul(each, weight)
	if p.r.KL > 0 {
		others := record.CrossEntropy(p.r.Policy().Among(score(referenceIn(w)), own), flat(answers))
		apart := graph.Mul(rollout.Divergence(each, others), flat(of[rollout.CountedAt]))
		terms = graph.Add(terms, graph.MulScalar(apart, p.r.KL))
	}
	return terms
}

// measure rewards the answers that are most likely, token by token: up to the first wrong one these are the tokens
// that are most likely after those of the right answer.
func (p policy) measure(w weights, batch []*graph.Node) []*graph.Node {
	most := func(int) taking {
		return func(logits *graph.Node, _ int) *graph.Node { return rollout.Likeliest(logits) }
	}
	alone := p
	alone.r.Group = 1
	if p.r.Reward.Texts() { // the reward does not follow from those
		stages := alone.play(w, batch[0], nil, most)
		return append(rollout.Measured(stages[0].reward), resolved(stages)...)
	}
	prompts := p.prompts(batch[0])
	n := dims(batch[0])[0]
	scores := p.scores(w, prompts.Tokens, prompts.Padding, prompts.Answers)
	hit := graph.Reshape(record.Hits(scores, flat(prompts.Answers)), n, p.r.Tokens)
	reward, exact := p.r.Reward.OfTokens(hit, prompts.Counted)
	mean := func(x *graph.Node) *graph.Node { return graph.MulScalar(graph.ReduceAllSum(x), 1/float64(n)) }
	out := []*graph.Node{mean(graph.OneMinus(reward)), mean(exact), mean(reward)}
	if p.r.Played() > 1 {
		out = append(out, resolved(alone.play(w, batch[0], nil, most))...)
	}
	return out
}

// resolved is the mean reward of the last stage, where there are several.
func resolved(stages []played) []*graph.Node {
	if len(stages) == 1 {
		return nil
	}
	all := rollout.Measured(stages[len(stages)-1].reward)
	return all[len(all)-1:]
}

// shown are what Task.Drawn gives.
func (p policy) shown(w weights, batch []*graph.Node) []*graph.Node {
	d, take := p.drawing(w)
	var all [4][]*graph.Node
	for i, s := range p.play(w, batch[0], nil, take) {
		out := []*graph.Node{s.texts, s.reward, s.counted}
		if p.r.KL > 0 {
			tokens, padding := rollout.Rows(s.prompts.Tokens, s.prompts.Padding, p.r.Group)
			others := p.scores(referenceIn(w), tokens, padding, s.texts)
			logits := s.logits
			for i := range logits {
				logits[i] = graph.InsertAxes(logits[i], 1)
			}
			own := graph.Reshape(graph.Concatenate(logits, 1), dims(others)...)
			each := record.CrossEntropy(p.r.Policy().Among(others, own), flat(s.texts))
			out = append(out, graph.Mul(rollout.Divergence(flat(d[i].Scores()), each), flat(s.counted)))
		}
		for k, x := range out {
			all[k] = append(all[k], x)
		}
	}
	var joined []*graph.Node
	for _, list := range all {
		switch len(list) {
		case 0:
		case 1:
			joined = append(joined, list[0])
		default:
			joined = append(joined, graph.Concatenate(list, 0))
		}
	}
	return joined
}

// drawing draws the tokens of each stage by the key of the step, and keeps their scores.
func (p policy) drawing(w weights) (stages []*rollout.Tokens, take func(stage int) taking) {
	for stage := range p.r.Played() {
		stages = append(stages, &rollout.Tokens{Key: w.Dice.Key, Policy: p.r.Policy(), First: stage * p.r.Tokens})
	}
	return stages, func(stage int) taking { return stages[stage].Take }
}

// apart is how answers to n prompts are drawn by other units.
func (p policy) apart(n, length int) *apart.Answers[weights] {
	inputs, first := p.r.Passed(n, length), p
	first.r = p.r.First()
	return &apart.Answers[weights]{Steps: p.r.Apart, Reads: 1 + p.r.Others, Inputs: inputs,
		Draw: func(w weights, batch []*graph.Node) []*graph.Node {
			d, take := first.drawing(w)
			var given [][]*graph.Node
			for i, s := range first.play(w, batch[0], nil, take) {
				given = append(given, d[i].Given(n, s.texts, s.reward))
			}
			if p.r.Others > 0 {
				return rollout.Passing(given, graph.StopGradient(batch[0]))
			}
			return rollout.Passing(given)
		},
		Learn: func(w weights, batch, all []*graph.Node) []*graph.Node {
			vocab, each := p.c.VocabSize(), len(inputs)
			g := rollout.GroupsOf(all[:each], each)
			g.Rows = batch[0]
			own := p.learnt(g.Admitted(vocab, p.silent))
			if p.r.Others == 0 {
				return own
			}
			g = rollout.GroupsOf(all[each:], each).Admitted(vocab, p.silent)
			g = g.Draw(p.r.Shared, w.Dice.Key, p.r.Played()*p.r.Tokens)
			own = rollout.Joined(own, p.learnt(g), g.Taken)
			if p.r.Across {
				return append(own, p.replies(w, g)...)
			}
			return own
		}}
}

// replies is what is learnt from the later stages of games whose answers are those of groups, of each stage.
func (p policy) replies(w weights, g rollout.Groups) (list []*graph.Node) {
	n := dims(g.Rows)[0]
	given := graph.Reshape(g.Stages[0].Answers, -1, p.r.Tokens)
	for _, s := range p.play(w, g.Rows, given, p.byKey(w)) {
		list = append(list, g.Weigh(rollout.Learnt(s.prompts, s.texts, graph.Reshape(s.reward, n, p.r.Group),
			s.counted))...)
	}
	return list
}

// learnt is what is learnt from groups of answers that are admitted, of each stage with the scores.
func (p policy) learnt(g rollout.Groups) (list []*graph.Node) {
	prompts, read := p.prompts(g.Rows), []*graph.Node(nil)
	for i, s := range g.Stages {
		texts, before := graph.Reshape(s.Answers, -1, p.r.Tokens), prompts
		if i > 0 {
			before = p.r.Reading(prompts, read)
		}
		list = append(list, rollout.Learnt(before, texts, s.Reward, p.r.CountedIn(i, prompts, texts))...)
		list, read = append(list, s.Scores), append(read, texts)
	}
	return list
}
