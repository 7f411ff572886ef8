package benchmark

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
)

// attack is what hostile workers, who know the updates of the others, make of their own.
type attack struct {
	name    string
	element func(mean, deviation float64, first float32) float32 // of their update, of that of the honest ones
}

// attacks of the literature. Label flipping is done where the data are.
var attacks = []attack{
	{"sign flip x 10", func(mean, _ float64, _ float32) float32 { return float32(-10 * mean) }},
	{"inner product x 1.5", func(mean, _ float64, _ float32) float32 { return float32(-1.5 * mean) }},
	{"a little is enough", func(mean, deviation float64, _ float32) float32 { return float32(mean - 1.5*deviation) }},
	{"mimic", func(_, _ float64, first float32) float32 { return first }},
}

// on replaces the last updates of a round.
func (a attack) on(deltas [][]*tensor.Tensor) [][]*tensor.Tensor {
	honest := deltas[:len(deltas)-attackers]
	lie := make([]*tensor.Tensor, len(honest[0]))
	for i, t := range honest[0] {
		lie[i] = tensor.New(t.Shape)
		y := lie[i].F32()
		for k := range y {
			var mean, square float64
			for _, d := range honest {
				mean += float64(d[i].F32()[k]) / float64(len(honest))
			}
			for _, d := range honest {
				away := float64(d[i].F32()[k]) - mean
				square += away * away / float64(len(honest))
			}
			y[k] = a.element(mean, math.Sqrt(square), t.F32()[k])
		}
	}
	return slices.Concat(honest, slices.Repeat([][]*tensor.Tensor{lie}, attackers))
}

// Of a siege.
const (
	besieged  = 8 // workers
	attackers = 2
	diverges  = 1.5 // times the loss without attack
)

// siege trains under attack by every rule. It has no bars until all of it is done.
func (r *StrategiesResult) siege(ctx context.Context, s *school, o StrategiesOptions) error {
	l := lesson{name: "without attack", units: besieged, steps: 20, rounds: o.Siege, seed: 1, rate: wary, exchange: lasting(diloco(codec.Int8), 8)}
	clean, _, err := s.learn(ctx, l)
	if errors.Is(err, errLater) {
		return nil
	} else if err != nil {
		return err
	}
	rules := []string{aggregate.Mean, aggregate.Median, aggregate.GeometricMedian, aggregate.CenteredClip, aggregate.MultiKrum}
	worst, mean := 0.0, 0.0
	for i := range len(attacks) + 1 {
		l.name, l.attack, l.flipped = "label flip", nil, attackers
		if i < len(attacks) {
			l.name, l.attack, l.flipped = attacks[i].name, &attacks[i], 0
		}
		row, best := SiegeRow{Attack: l.name, Gaps: map[string]*float64{}}, math.Inf(1)
		for _, l.exchange.Rule = range rules {
			loss, _, err := s.learn(ctx, l)
			if errors.Is(err, errLater) {
				return nil
			} else if err != nil {
				return err
			}
			gap := loss/clean - 1
			row.Gaps[l.exchange.Rule] = nil
			if !math.IsInf(gap, 1) {
				g := rounded(gap, 4)
				row.Gaps[l.exchange.Rule] = &g
			}
			if l.exchange.Rule == aggregate.Mean {
				mean = max(mean, min(loss/clean, 1e6))
			} else {
				best = min(best, gap)
			}
		}
		worst = max(worst, best)
		r.Sieges = append(r.Sieges, row)
	}
	r.Bars = append(r.Bars,
		atLeast("2 of 8 workers hostile: loss of the mean under its worst attack, of that without", mean, diverges),
		Below("2 of 8 workers hostile: gap of the best rule to the loss without attack, at its worst of five attacks", worst, 0.02),
	)
	return nil
}
