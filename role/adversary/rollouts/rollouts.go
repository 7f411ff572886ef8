// Package rollouts holds workers that draw answers falsely, where other units learn from them.
package rollouts

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
)

// Forgery is a way to draw answers falsely.
type Forgery string

// Forgeries. Each commits to its false answers, so that nothing but an execution tells it from honest work.
const (
	EditsToken   Forgery = "token"  // changes the first token of the answers
	EditsReward  Forgery = "reward" // raises a reward
	EditsLast    Forgery = "last"   // changes the first token of the last texts of a game
	EndsEarly    Forgery = "early"  // draws the first token of each answer, and none after it
	OtherSeed    Forgery = "seed"   // draws with other noise, of other prompts
	ChosenPrompt Forgery = "prompt" // answers the prompts of another unit
	CopiesOther  Forgery = "copy"   // passes on what another unit has drawn
	StalePolicy  Forgery = "stale"  // draws with the first checkpoint that it knew
	OtherPolicy  Forgery = "policy" // draws with changed weights
	FewerBits    Forgery = "bits"   // draws with weights of eight bits
	GoldPrefix   Forgery = "gold"   // begins each answer with the first token of the right one
	NoTokens     Forgery = "vocab"  // draws tokens that no vocabulary has, with rewards that differ
	WildScores   Forgery = "scores" // says that no policy would have drawn its tokens
	WildRewards  Forgery = "wild"   // rewards that are no numbers, or near the highest one
)

// Forgeries of units that learn, where they read answers that were drawn for others.
const (
	OwnAnswers Forgery = "own" // learns from its own answers in place of those of others
)

// Forges is a worker that draws answers falsely, and learns as it should, or the reverse. Where no answers are drawn
// apart it is honest, and in the rounds before After.
type Forges struct {
	How   Forgery
	After uint32
}

// Install implements Attack.
func (a Forges) Install(c adversary.Setup) adversary.Step {
	c.Party.Compute = &drawer{Honest: c.Honest, how: a.How, after: a.After}
	return c.Step
}

// Withholds is a worker that draws and commits as it should, and does not serve the answers.
type Withholds struct{}

// Install implements Attack.
func (Withholds) Install(c adversary.Setup) adversary.Step {
	return func(e role.Event) []role.Action {
		return slices.DeleteFunc(c.Step(e), func(a role.Action) bool {
			r, reveals := a.(role.Reveal)
			s := c.Honest.Task().Spec
			return reveals && s.Rollout != nil && r.Work.Unit >= s.Units
		})
	}
}

type drawer struct {
	adversary.Honest
	how   Forgery
	after uint32
	first *train.Checkpoint
}

// Train implements party.Compute.
func (d *drawer) Train(ctx context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	s := d.Task().Spec
	base, err := d.Base(name)
	if base != nil && base.Round < d.after {
		return d.Honest.Train(ctx, name, unit)
	}
	if err == nil && s.Rollout != nil && s.Rollout.Shared && unit < s.Units && d.how == OwnAnswers {
		return d.learn(name, base, unit)
	}
	if err != nil || s.Rollout == nil || unit < s.Units || d.how == OwnAnswers {
		return d.Honest.Train(ctx, name, unit)
	}
	if d.first == nil {
		d.first = base
	}
	r, err := d.draw(base, unit)
	if err != nil {
		return nil, err
	}
	return d.NewWork(name, unit, r)
}

// learn learns from the answers to the prompts of the unit alone, and says that it did so from all.
func (d *drawer) learn(name terms.Checkpoint, base *train.Checkpoint, unit uint32) (*engine.Work, error) {
	from, err := d.Origin(name, unit)
	if err != nil {
		return nil, err
	}
	t, err := d.task()
	if err != nil {
		return nil, err
	}
	begin, err := t.Begin(base, unit, from)
	if err != nil {
		return nil, err
	}
	each := len(parts.HandedOn(t.Step))
	own := slices.Clone(from)
	for i := range own {
		if at := i / each; at%int(t.Spec.Units) > 0 {
			own[i] = from[at/int(t.Spec.Units)*int(t.Spec.Units)*each+i%each]
		}
	}
	r, err := t.Run(base, unit, own, nil)
	if err != nil {
		return nil, err
	}
	r.Segments[0] = begin.Root()
	return d.NewWork(name, unit, r)
}

// task is that of the job, with an executor of its own.
func (d *drawer) task() (*train.Task, error) {
	t, s := *d.Task(), *d.Task().Spec
	if d.how == OtherSeed {
		s.Seed++
	}
	t.Spec = &s
	exec, err := s.Compile(t.Step, 1)
	if err != nil {
		return nil, err
	}
	t.Exec = exec
	return &t, t.Divide()
}

// draw draws what a unit is to draw, or something else.
func (d *drawer) draw(base *train.Checkpoint, unit uint32) (*train.Result, error) {
	t, err := d.task()
	if err != nil {
		return nil, err
	}
	s := t.Spec
	whole := base
	base = train.ModelOf(s, base, unit)
	from, drawn := *base, unit
	switch d.how {
	case ChosenPrompt, CopiesOther:
		drawn = s.Units + (unit+1-s.Units)%s.Apart().Drawing()
		if d.how == CopiesOther {
			from = *train.ModelOf(s, whole, drawn)
		}
	case StalePolicy:
		from.Params = train.ModelOf(s, d.first, unit).Params
	case OtherPolicy:
		from.Params = slices.Clone(base.Params)
		from.Params[0] = base.Params[0].Clone()
		from.Params[0].F32()[0]++
	case FewerBits:
		from.Params = nil
		for _, p := range base.Params {
			from.Params = append(from.Params, rounded(p))
		}
	}
	r, err := t.Run(&from, drawn, nil, nil)
	if err != nil {
		return nil, err
	}
	if from.Params[0] != base.Params[0] || d.how == StalePolicy { // it says that it drew with the right ones
		for i, p := range base.Params {
			r.End[i] = p.Clone()
		}
	}
	answers, reward, scores, err := drawnBy(t.Step, r, d.how == EditsLast)
	if err != nil {
		return nil, err
	}
	switch each := answers.Shape.Dims[2]; d.how {
	case EditsToken, EditsLast:
		answers.I32()[0] ^= 1
	case GoldPrefix:
		if err := gild(t, base.Round, unit, answers); err != nil {
			return nil, err
		}
	case EditsReward:
		reward.F32()[0]++
	case EndsEarly:
		for i := range answers.I32() {
			if i%each > 0 {
				answers.I32()[i] = 0
			}
		}
	case NoTokens:
		for i := range answers.I32() {
			answers.I32()[i] = 1 << 30
		}
		for i := range reward.F32() {
			reward.F32()[i] = float32(i)
		}
	case WildScores:
		for i := range scores.F32() {
			scores.F32()[i] = 1e30
		}
	case WildRewards:
		for i := range reward.F32() {
			reward.F32()[i] = []float32{float32(math.NaN()), math.MaxFloat32, -math.MaxFloat32}[i%3]
		}
	}
	begin := train.StateRoot(0, append(train.Roots(base.Params), train.Roots(zeros(r.End[len(base.Params):]))...))
	r.Segments = []canon.Digest{begin, train.StateRoot(1, train.Roots(r.End))}
	return r, nil
}

// rounded is a tensor of which each weight is one of 255 levels.
func rounded(x *tensor.Tensor) *tensor.Tensor {
	most, x := float32(0), x.Clone()
	for _, w := range x.F32() {
		most = max(most, w, -w)
	}
	for i, w := range x.F32() {
		if most > 0 {
			x.F32()[i] = float32(math.Round(float64(w/most*127))) * most / 127
		}
	}
	return x
}

// gild begins each answer [n, group, tokens] with the first token of the right one: the first of its row that is not
// silent. Tokens in the upper half of the vocabulary of the data are silent.
func gild(t *train.Task, round, unit uint32, answers *tensor.Tensor) error {
	s, silent, width := t.Spec, int32(t.Corpus.Manifest(bundle.ShardTokens).Vocab/2), int(t.Spec.Length)+1
	rows := make([]int32, int(s.Batch)*width)
	if err := t.Corpus.Batch(rows, s.Of(unit).Address(round, unit, 0), int(s.Length)); err != nil {
		return fmt.Errorf("adversary: %w", err)
	}
	group, tokens := answers.Shape.Dims[1], answers.Shape.Dims[2]
	for i := range len(answers.I32()) / tokens {
		row := rows[i/group*width:][:width]
		if at := slices.IndexFunc(row, func(id int32) bool { return id < silent }); at >= 0 {
			answers.I32()[i*tokens] = row[at]
		}
	}
	return nil
}

// zeros are tensors of zeros of the same shapes.
func zeros(like []*tensor.Tensor) (list []*tensor.Tensor) {
	for _, x := range like {
		list = append(list, tensor.New(x.Shape))
	}
	return list
}

// drawnBy are the answers, their rewards and the scores of their tokens that a unit passes on: of a game those of the
// first stage, or of the last one.
func drawnBy(step *program.Program, r *train.Result, last bool) (answers, reward, scores *tensor.Tensor, err error) {
	const each = 3 // tensors of a stage
	names := parts.HandedOn(step)
	if len(names) < each || len(r.End) < len(names) {
		return nil, nil, nil, fmt.Errorf("adversary: a unit passes on %d tensors", len(names))
	}
	on := r.End[len(r.End)-len(names):]
	if last {
		on = on[(len(names)/each-1)*each:]
	}
	return on[0], on[1], on[2], nil
}
