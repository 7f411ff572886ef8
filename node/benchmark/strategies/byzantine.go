package strategies

import (
	"math"

	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/node/benchmark"
)

// Of a byzantineBench.
const (
	defenders = 8   // workers, with the attackers
	attackers = 2   // the last of them
	diverges  = 1.5 // times the loss without attack
)

// byzantineBench is training under attack, by several rules, in rounds of 20 steps.
type byzantineBench struct {
	bench  *lossBench
	rounds int
}

// defences are the rules that combine updates under attack. Each is compared with the first of them without attack.
var defences = []string{aggregate.Mean, aggregate.Median, aggregate.GeometricMedian, aggregate.CenteredClip,
	aggregate.MultiKrum}

// cleanRun is the run without attack.
func (w byzantineBench) cleanRun(seed uint64) trainingRun {
	return trainingRun{name: "without attack", units: defenders, steps: 20, rounds: w.rounds, seed: seed, rate: wary,
		exchange: withMoments(diloco(codec.Int8), 8)}
}

// attackRuns are the runs under one attack, in the order of defences. An index after the last attack flips labels.
func (w byzantineBench) attackRuns(attack int, seed uint64) []trainingRun {
	l := w.cleanRun(seed)
	if attack < len(attacks) {
		l.name, l.attack = attacks[attack].name, &attacks[attack]
	} else {
		l.name, l.flipped = "label flip", attackers
	}
	all := make([]trainingRun, len(defences))
	for i, rule := range defences {
		all[i] = l
		all[i].exchange.Rule = rule
	}
	return all
}

// runs are those with a seed.
func (w byzantineBench) runs(seed uint64) []trainingRun {
	all := []trainingRun{w.cleanRun(seed)}
	for i := range len(attacks) + 1 {
		all = append(all, w.attackRuns(i, seed)...)
	}
	return all
}

// addAttackRows adds the losses that are known, and the bars once all runs are done.
func (r *Result) addAttackRows(w byzantineBench, seeds int) error {
	losses, _, err := w.bench.known(w.cleanRun(0), seeds)
	if err != nil || len(losses) == 0 {
		return err
	}
	clean := sample(losses, 0)
	whole := len(losses) == seeds
	plain, worst := 0.0, 0.0 // of the mean, and of the best rule, under the worst attack
	for i := range len(attacks) + 1 {
		best := math.Inf(1)
		var row AttackRow
		for _, l := range w.attackRuns(i, 0) {
			losses, _, err := w.bench.known(l, seeds)
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
