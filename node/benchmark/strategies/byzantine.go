package strategies

import (
	"math"

	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/node/benchmark"
)

// Of a siege.
const (
	defenders = 8   // workers, with the attackers
	attackers = 2   // the last of them
	diverges  = 1.5 // times the loss without attack
)

// siege is training under attack, by several rules, in rounds of 20 steps.
type siege struct {
	school *school
	rounds int
}

// defences are the rules of a siege. The loss of the first without attack is the reference for all.
var defences = []string{aggregate.Mean, aggregate.Median, aggregate.GeometricMedian, aggregate.CenteredClip,
	aggregate.MultiKrum}

// peace is the lesson without attack.
func (w siege) peace(seed uint64) lesson {
	return lesson{name: "without attack", units: defenders, steps: 20, rounds: w.rounds, seed: seed, rate: wary,
		exchange: lasting(diloco(codec.Int8), 8)}
}

// battles are the lessons under one attack, by defence. The attack after the last is that labels are flipped.
func (w siege) battles(attack int, seed uint64) []lesson {
	l := w.peace(seed)
	if attack < len(attacks) {
		l.name, l.attack = attacks[attack].name, &attacks[attack]
	} else {
		l.name, l.flipped = "label flip", attackers
	}
	all := make([]lesson, len(defences))
	for i, rule := range defences {
		all[i] = l
		all[i].exchange.Rule = rule
	}
	return all
}

// lessons are those with a seed.
func (w siege) lessons(seed uint64) []lesson {
	all := []lesson{w.peace(seed)}
	for i := range len(attacks) + 1 {
		all = append(all, w.battles(i, seed)...)
	}
	return all
}

// besieged adds the known losses of a siege, and its bars once all runs are done.
func (r *Result) besieged(w siege, seeds int) error {
	losses, _, err := w.school.known(w.peace(0), seeds)
	if err != nil || len(losses) == 0 {
		return err
	}
	clean := sample(losses, 0)
	whole := len(losses) == seeds
	plain, worst := 0.0, 0.0 // of the mean, and of the best rule, under the worst attack
	for i := range len(attacks) + 1 {
		best := math.Inf(1)
		var row AttackRow
		for _, l := range w.battles(i, 0) {
			losses, _, err := w.school.known(l, seeds)
			if err != nil {
				return err
			}
			if whole = whole && len(losses) == seeds; len(losses) == 0 {
				continue
			}
			if row.Rules == nil {
				row = AttackRow{Attack: l.name, Rules: map[string]*Sample{}}
			}
			s := sample(losses, clean.Mean)
			if row.Rules[l.exchange.Rule] = &s; s.diverged() {
				row.Rules[l.exchange.Rule] = nil
			}
			if l.exchange.Rule == aggregate.Mean {
				plain = max(plain, min(s.Mean/clean.Mean, 1e6))
			} else {
				best = min(best, s.Gap)
			}
		}
		if row.Rules != nil {
			r.Attacks = append(r.Attacks, row)
		}
		worst = max(worst, best)
	}
	if whole {
		r.Bars = append(r.Bars,
			benchmark.AtLeast("2 of 8 workers hostile: loss of the mean under its worst attack, of that without", plain,
				diverges),
			benchmark.Below("2 of 8 workers hostile: gap of the best rule to the loss without attack, at its worst of "+
				"five attacks",
				worst, 0.02),
		)
	}
	return nil
}
