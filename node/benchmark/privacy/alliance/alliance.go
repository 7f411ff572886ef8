// Package alliance measures what a committee pays: rounds of members with digits of their own, some of whom name the
// digits wrongly, hand in random models or copies, by the rules of protocol/committee, with evaluators of whom a third
// lie together. It has no network and no messages: those are tested in cmd/starling.
package alliance

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/benchmark/privacy/digits"
	"github.com/starling-network/starling/node/benchmark/privacy/learner"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/committee"
)

// Size is how much a measurement computes.
type Size struct{ Rounds int }

// Kinds of members.
const (
	Honest  = "honest"
	Flips   = "flips labels"   // trains on each digit named by another
	Random  = "hands in noise" // hands in the model with noise as long as an honest update
	Copies  = "copies"         // hands in the model of the round
	Coerced = "colluding"      // trains honestly, and a third of the evaluators raise its score
)

// members of each kind.
var members = []struct {
	kind   string
	number int
}{{Honest, 10}, {Flips, 4}, {Random, 4}, {Copies, 1}, {Coerced, 1}}

// Of the committee, besides the usual terms: evaluators that may be drawn, and how many of them lie.
const (
	panel      = committee.UsualPanel
	evaluators = 30
	liars      = evaluators / 3
	pay        = 1_000_000
)

// Of the training: examples of a member and of the set of a round, steps of a round, and the rate of learning.
const (
	examples = 200
	public   = committee.UsualExamples
	steps    = 5
	rate     = 0.05
)

// Earned is what members of a kind earned.
type Earned struct {
	Kind    string  `json:"kind"`
	Members int     `json:"members"`
	Rounds  int     `json:"rounds"` // in which one was drawn, of all together
	Paid    float64 `json:"paid"`   // for each of them, of the pay of an honest member for one
}

// Moved is what liars among the evaluators did to the scores.
type Moved struct {
	Captured int     `json:"captured"` // rounds in which more than half of the panel lie
	Scores   float64 `json:"scores"`   // largest change of a rating by a third of a panel, in deviations of its scores
	Drawn    float64 `json:"drawn"`    // likewise, by a third of all evaluators, of whom panels are drawn
}

// Outcome of a measurement.
type Outcome struct {
	Dirichlet float64  `json:"dirichlet"` // of the shares of the digits of a member
	Rounds    int      `json:"rounds"`
	Earned    []Earned `json:"earned"`
	Moved     Moved    `json:"moved"`
	Before    float64  `json:"before"` // loss on digits of no member, before the first round
	After     float64  `json:"after"`  // and after the last
}

// world is one committee.
type world struct {
	kinds []string
	data  []learner.Data
	model *learner.Shared

	honest   side // as all evaluators report the truth
	liars    side // as a third of all lie, and panels are drawn
	third    side // as a third of each panel lies
	captured int
}

// side is a committee as one set of evaluators has it.
type side struct {
	committee committee.Committee
	members   map[string]committee.Member
	ratings   map[string][]float64 // of each member, after each of its rounds
	scores    map[string][]float64
}

// Measure plays rounds of a committee whose members have shares of Dirichlet distributions.
func Measure(ctx context.Context, dirichlet float64, s Size, progress func(string)) (o Outcome, err error) {
	w := &world{}
	if w.model, err = learner.NewShared(1); err != nil {
		return o, err
	}
	for _, m := range members {
		for range m.number {
			w.kinds = append(w.kinds, m.kind)
		}
	}
	w.data = learner.Owners(dirichlet, learner.Size{Owners: len(w.kinds), Examples: examples})
	for i, kind := range w.kinds {
		if kind == Flips {
			for k := range w.data[i] {
				w.data[i][k].Digit = digits.Classes - 1 - w.data[i][k].Digit
			}
		}
	}
	for _, side := range []*side{&w.honest, &w.liars, &w.third} {
		if err := side.begin(s.Rounds, len(w.kinds)); err != nil {
			return o, err
		}
	}
	test := learner.Drawn(1<<20, 1000)
	o = Outcome{Dirichlet: dirichlet, Rounds: s.Rounds}
	if o.Before, err = w.model.Loss(nil, 0, test); err != nil {
		return o, err
	}
	for round := range s.Rounds {
		if err := w.round(ctx, round); err != nil {
			return o, err
		}
		if (round+1)%20 == 0 {
			progress(fmt.Sprintf("round %d of a committee", round+1))
		}
	}
	if o.After, err = w.model.Loss(nil, 0, test); err != nil {
		return o, err
	}
	o.Earned = w.earned()
	o.Moved = Moved{Captured: w.captured, Scores: w.moved(w.third), Drawn: w.moved(w.liars)}
	return o, nil
}

func name(i int) string { return fmt.Sprintf("member%02d", i) }

// begin begins a committee with all its members.
func (s *side) begin(rounds, n int) error {
	s.members, s.ratings, s.scores = map[string]committee.Member{}, map[string][]float64{}, map[string][]float64{}
	const stake = 1_000_000
	c, err := committee.Convene(1, "host", committee.Terms{Rounds: uint32(rounds), Pay: pay, Drawn: committee.UsualDrawn,
		Stake: stake, Window: committee.UsualWindow, Members: uint32(n), Job: canon.Sum("job"),
		Round: arena.Terms{Title: "digits", Panel: panel, Examples: public, Vocab: digits.Classes, Length: 2,
			MaxBytes: 1 << 20, Adjusted: true, Entering: 10, Revealing: 10, Judging: 10, Tokenizer: canon.Sum("none"),
			About: "http://127.0.0.1/"}}, 0)
	for i := range n {
		var m committee.Member
		if err == nil {
			c, m, err = c.Join(m, name(i), stake)
			s.members[name(i)] = m
		}
	}
	s.committee = c
	return err
}

// round plays one round, the same for each side but for what evaluators report.
func (w *world) round(ctx context.Context, round int) error {
	seed := canon.Sum("beacon", binary.BigEndian.AppendUint64(nil, uint64(round)))
	drawn, err := w.honest.draw(round, seed)
	if err != nil {
		return err
	}
	set := learner.Drawn(uint64(2_000_000+round), public)
	truth := arena.Report{}
	updates := make([][]*tensor.Tensor, len(drawn.Invited))
	base, err := w.losses(nil, 0, set)
	if err != nil {
		return err
	}
	truth.Base = base.Exact
	colluding := -1
	for k, who := range drawn.Invited {
		var i int
		if _, err := fmt.Sscanf(who, "member%d", &i); err != nil {
			return err
		}
		if updates[k], err = w.update(ctx, i, round); err != nil {
			return err
		}
		entry, err := w.losses(updates[k], 1/float32(len(updates)), set)
		if err != nil {
			return err
		}
		truth.Entries = append(truth.Entries, arena.Judged{Status: arena.Placed, Mean: base.Lower(entry)})
		if w.kinds[i] == Coerced {
			colluding = k
		}
	}
	lie := truth
	lie.Entries = make([]arena.Judged, len(truth.Entries)) // all but theirs are worse than the model of the round
	for k := range lie.Entries {
		lie.Entries[k] = arena.Judged{Status: arena.Placed, Mean: truth.Base}
		if k == colluding {
			lie.Entries[k].Mean = 0
		}
	}
	gains := w.honest.settle(drawn, reports(truth, lie, 0))
	lying := w.lying(seed)
	if 2*lying > panel {
		w.captured++
	}
	for _, other := range []struct {
		side  *side
		liars int
	}{{&w.liars, lying}, {&w.third, panel / 3}} {
		r, err := other.side.draw(round, seed)
		if err != nil {
			return err
		}
		other.side.settle(r, reports(truth, lie, other.liars))
	}
	var better [][]*tensor.Tensor
	for k, g := range gains {
		if g > 0 && updates[k] != nil {
			better = append(better, updates[k])
		}
	}
	w.model.Move(better)
	return nil
}

// losses are those of the model less a part of an update, as evaluators compute them.
func (w *world) losses(update []*tensor.Tensor, part float32, set learner.Data) (arena.Losses, error) {
	exact, adjusted, err := w.model.Adjusted(update, part, set)
	units := func(nats float64) uint64 { return uint64(min(nats, 60) * arena.Unit) }
	return arena.Losses{Exact: units(exact), Adjusted: units(adjusted)}, err
}

// reports are those of a panel of whom a number lies.
func reports(truth, lie arena.Report, lying int) []arena.Report {
	all := make([]arena.Report, panel)
	for i := range all {
		if all[i] = truth; i < lying {
			all[i] = lie
		}
	}
	return all
}

// lying is how many of a drawn panel lie.
func (w *world) lying(seed canon.Digest) (n int) {
	var from []arena.Candidate
	for i := range evaluators {
		from = append(from, arena.Candidate{Account: fmt.Sprintf("evaluator%02d", i), Stake: 1})
	}
	liar := map[string]bool{}
	for _, c := range from[:liars] {
		liar[c.Account] = true
	}
	for _, who := range arena.Draw("starling/benchmark-panel/1", from, panel, seed, 1) {
		if liar[who] {
			n++
		}
	}
	return n
}

// update is what a member subtracts from the model of a round.
func (w *world) update(ctx context.Context, i, round int) ([]*tensor.Tensor, error) {
	if w.kinds[i] == Copies {
		return nil, nil
	}
	u, err := w.model.Update(ctx, w.data[i], round, steps, rate)
	if err != nil || w.kinds[i] != Random {
		return u, err
	}
	long, wide := 0.0, 0.0
	for k, t := range u {
		noise := tensor.New(t.Shape)
		philox.NormalTo(noise.F32(), uint64(i+1), uint64(round*100+k))
		for j, x := range t.F32() {
			long += float64(x) * float64(x)
			wide += float64(noise.F32()[j]) * float64(noise.F32()[j])
		}
		u[k] = noise
	}
	for _, t := range u {
		for j := range t.F32() {
			t.F32()[j] *= float32(math.Sqrt(long / wide))
		}
	}
	return u, nil
}

// draw begins a round, and draws its members.
func (s *side) draw(round int, seed canon.Digest) (arena.Contest, error) {
	height := int64(10 * round)
	c, err := s.committee.Begin("host", canon.Sum("model"), "http://127.0.0.1/", seed, height)
	if err != nil {
		return arena.Contest{}, err
	}
	var all []committee.Member
	for _, m := range s.members {
		all = append(all, m)
	}
	c, r, _, err := c.Draw(uint64(round+1), all, seed, height+1)
	s.committee = c
	return *r, err
}

// settle ends a round by reports, and returns the gains.
func (s *side) settle(r arena.Contest, said []arena.Report) []uint64 {
	var entries []arena.Entry
	var invited []committee.Member
	for i, who := range r.Invited {
		entries = append(entries, arena.Entry{Number: uint32(i + 1), Account: who, Model: canon.Sum(who)})
		invited = append(invited, s.members[who])
	}
	r.Phase, r.Gains = arena.Paid, arena.Gains(said, len(entries))
	c, r, after, _, _ := s.committee.Settle(r, entries, nil, invited, int64(r.ID)*10)
	s.committee = c
	for _, m := range after {
		s.members[m.Account] = m
	}
	for _, o := range r.Outcomes {
		s.ratings[o.Account] = append(s.ratings[o.Account], float64(o.Rating))
		s.scores[o.Account] = append(s.scores[o.Account], float64(o.Score))
	}
	return r.Gains
}

// earned is what members of each kind were paid for each round in which they were drawn, as the evaluators report the
// truth.
func (w *world) earned() []Earned {
	all := make([]Earned, len(members))
	for k, m := range members {
		all[k] = Earned{Kind: m.kind, Members: m.number}
		for i, kind := range w.kinds {
			if kind == m.kind {
				x := w.honest.members[name(i)]
				all[k].Rounds += int(x.Drawn)
				all[k].Paid += float64(x.Paid)
			}
		}
		all[k].Paid /= float64(max(1, all[k].Rounds))
	}
	honest := all[0].Paid
	for k := range all {
		all[k].Paid /= honest
	}
	return all
}

// moved is the largest change of a rating by liars, in standard deviations of the scores of its member.
func (w *world) moved(by side) (most float64) {
	for who, ratings := range w.honest.ratings {
		deviation := spread(w.honest.scores[who])
		for i, r := range ratings {
			switch change := math.Abs(by.ratings[who][i] - r); {
			case change == 0:
			case deviation == 0:
				return math.Inf(1)
			default:
				most = max(most, change/deviation)
			}
		}
	}
	return most
}

// spread is the standard deviation of numbers.
func spread(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += v
		squares += v * v
	}
	n := float64(len(x))
	return math.Sqrt(max(0, squares/n-sum/n*sum/n))
}
