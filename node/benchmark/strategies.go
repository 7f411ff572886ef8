package benchmark

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
)

// StrategiesOptions say how thoroughly strategies are compared.
type StrategiesOptions struct {
	Layers, Width, Batch, Length int
	Steps                        int    // inner steps of the comparison of losses, in rounds of 20
	Seeds                        int    // of it, from 1 on
	Siege                        int    // rounds of 5 steps under attack
	Data                         string // file of text; "": sentences that are made
	Threads                      int
	Losses                       bool // the bars of losses are claimed
}

// QuickStrategies and ThoroughStrategies are the options of the command, but for the text and the threads.
var (
	QuickStrategies    = StrategiesOptions{Layers: 1, Width: 16, Batch: 4, Length: 16, Steps: 40, Seeds: 1, Siege: 8}
	ThoroughStrategies = StrategiesOptions{Layers: 4, Width: 64, Batch: 8, Length: 64, Steps: 4000, Seeds: 3, Siege: 160, Losses: true}
)

// StrategiesResult is what Strategies measures.
type StrategiesResult struct {
	Bars    []Bar      `json:"bars"`
	Losses  []LossRow  `json:"losses"`
	Sieges  []SiegeRow `json:"sieges"`
	Note    string     `json:"note"`
	Seconds float64    `json:"seconds"`
}

// LossRow is a strategy against data-parallel training on as many tokens.
type LossRow struct {
	Name   string    `json:"name"`
	Loss   []float64 `json:"loss"`   // nats a token, by seed
	Mean   float64   `json:"mean"`   // of them
	Spread float64   `json:"spread"` // their standard deviation
	Gap    float64   `json:"gap"`    // of the means, of that of data-parallel training: 0.01 is 1 %
	Bytes  int64     `json:"bytes"`  // of the updates of a worker, in the whole run
	Less   float64   `json:"less"`   // times fewer than gradients in float32
}

// SiegeRow is an attack of two of eight workers, and the gap of every rule to the loss of the mean without attack; null: the
// model diverged.
type SiegeRow struct {
	Attack string              `json:"attack"`
	Gaps   map[string]*float64 `json:"gaps"`
}

// Strategies holds the parts of the exchange against what they promise, and against each other on one small model, with the code of
// jobs: exchange/codec, exchange/aggregate, exchange/outer and the training of units.
func Strategies(ctx context.Context, o StrategiesOptions) (*StrategiesResult, error) {
	for name, n := range map[string]int{"threads": o.Threads, "steps": o.Steps, "seeds": o.Seeds, "rounds under attack": o.Siege} {
		if err := positive(name, n); err != nil {
			return nil, err
		}
	}
	begin := time.Now()
	r := &StrategiesResult{}
	if err := r.formulas(); err != nil {
		return nil, err
	}
	text := []byte(sentences(20_000))
	if o.Data != "" {
		var err error
		if text, err = os.ReadFile(o.Data); err != nil {
			return nil, unusable(o.Data, err)
		}
	}
	s, err := newSchool(text, o.Layers, o.Width, o.Batch, o.Length, o.Threads)
	if err != nil {
		return nil, err
	}
	if err := r.siege(ctx, s, o); err != nil {
		return nil, err
	}
	if err := r.compare(ctx, s, o); err != nil {
		return nil, err
	}
	r.Seconds = rounded(time.Since(begin).Seconds(), 1)
	return r, nil
}

// sentences are text to learn from where no other is given.
func sentences(n int) string {
	words := strings.Fields("the a bird fish tree river stone child sings swims grows flows waits runs over under near with and then slowly gladly")
	random := kernel.NewPhilox(7, 0)
	var b strings.Builder
	for range n {
		b.WriteString(words[random.Uint64n(uint64(len(words)))])
		b.WriteByte(" .\n"[min(2, random.Uint64n(12)/5)])
	}
	return b.String()
}

// formulas adds the bars that need no training.
func (r *StrategiesResult) formulas() error {
	wrong := 0
	for _, name := range []string{
		codec.Int8, codec.Float32, codec.Float16, codec.BFloat16, codec.E3M0, codec.Sign, codec.Sparse, codec.Cosine, codec.TopKName(256, 8), codec.TopKName(1, 32),
	} {
		c, _ := codec.ByName(name)
		for _, dims := range [][]int{{1}, {63}, {64, 64}, {257, 65}, {70_001}} {
			x := tensor.New(tensor.Make(tensor.Float32, dims...))
			kernel.NormalTo(x.F32(), 1, 0)
			b, err := codec.Encode(name, x)
			if err != nil {
				return err
			}
			if len(b) != codec.Size(c, x.Shape) {
				wrong++
			}
		}
	}
	entries, same, away := bandwidthSteps()
	r.Bars = append(r.Bars,
		Below("payloads whose size is not that of the formula, of ten codecs and five shapes", float64(wrong), 1),
		Below(fmt.Sprintf("published bandwidths (Douillard et al. 2025): grid steps away, the worst of %d (%d are the same)", entries, same), away, 1.5),
		Below("published shares of INTELLECT-1: points away, the worst of three", intellectPoints(), 0.5),
		atLeast("steps of workers at 0.58, 0.75, 1.51 and 3.33 s, made to measure in rounds of 20, of their speeds together", unequalSpeeds(), 0.9),
	)
	return nil
}

// unequalSpeeds is what workers do whose steps are made to measure (outer.LocalSteps), of what they could without waiting for
// one another.
func unequalSpeeds() float64 {
	const h = 20
	steps := []uint64{580, 750, 1510, 3330} // milliseconds
	var done, could, longest float64
	for _, t := range steps {
		n := outer.LocalSteps(h, 1e9/t, 1e9/steps[0])
		done += float64(n)
		could += 1 / float64(t)
		longest = max(longest, float64(n)*float64(t))
	}
	return done / (could * longest)
}

// Of a siege.
const (
	besieged  = 8 // workers
	attackers = 2
	diverges  = 1.5 // times the loss without attack
)

// siege trains under attack by every rule.
func (r *StrategiesResult) siege(ctx context.Context, s *school, o StrategiesOptions) error {
	l := lesson{units: besieged, steps: 5, rounds: o.Siege, seed: 1}
	l.exchange = train.Exchange{Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9}
	clean, _, err := s.train(ctx, l)
	if err != nil {
		return err
	}
	rules := []string{aggregate.Mean, aggregate.Median, aggregate.GeometricMedian, aggregate.CenteredClip, aggregate.MultiKrum}
	worst, mean := 0.0, 0.0
	for i := range len(attacks) + 1 {
		row, best := SiegeRow{Attack: "label flip", Gaps: map[string]*float64{}}, math.Inf(1)
		l.attack, l.flipped = nil, attackers
		if i < len(attacks) {
			row.Attack, l.attack, l.flipped = attacks[i].name, hostile(attackers, attacks[i].make), 0
		}
		for _, l.exchange.Rule = range rules {
			loss, _, err := s.train(ctx, l)
			if err != nil {
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

// Rounds of the comparison of losses.
const (
	pupils    = 4 // workers
	syncSteps = 20
)

// compared are strategies as jobs name them.
var compared = []struct {
	name     string
	bar      float64 // of the gap
	exchange train.Exchange
}{
	{"diloco float32", 0.01, train.Exchange{Codec: codec.Float32, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9}},
	{"diloco int8", 0.01, train.Exchange{Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9}},
	{"diloco fp4", 0.015, train.Exchange{Codec: codec.E3M0, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9}},
	{"sparseloco 64 of 4096, int2", 0.04, train.Exchange{Codec: codec.Sparse, Rule: aggregate.Contributors, Outer: outer.SGD, Rate: 1, Feedback: 0.95, Carry: 8}},
	{"sparseloco 256 of 4096, int8", 0.02, train.Exchange{Codec: codec.TopKName(256, 8), Rule: aggregate.Contributors, Outer: outer.SGD, Rate: 1, Feedback: 0.95, Carry: 8}},
}

// compare adds the losses of strategies.
func (r *StrategiesResult) compare(ctx context.Context, s *school, o StrategiesOptions) error {
	rounds := max(1, o.Steps/syncSteps)
	base := LossRow{Name: "data parallel"}
	rows := make([]LossRow, len(compared))
	for seed := range uint64(o.Seeds) {
		l := lesson{units: pupils, steps: syncSteps, rounds: rounds, seed: seed + 1, exchange: compared[0].exchange}
		loss, err := s.parallel(ctx, l)
		if err != nil {
			return err
		}
		base.Loss = append(base.Loss, loss)
		for i, c := range compared {
			l.exchange = c.exchange
			if loss, rows[i].Bytes, err = s.train(ctx, l); err != nil {
				return err
			}
			rows[i].Name, rows[i].Loss = c.name, append(rows[i].Loss, loss)
		}
	}
	base.measure(base)
	base.Bytes, base.Less = 4*int64(s.config.Parameters())*int64(rounds*syncSteps), 1
	r.Losses = []LossRow{base}
	for i, row := range rows {
		row.measure(base)
		row.Less = rounded(float64(base.Bytes)/float64(row.Bytes), 1)
		r.Losses = append(r.Losses, row)
		if o.Losses {
			r.Bars = append(r.Bars, Below(row.Name+": gap of the loss to data-parallel training on as many tokens", row.Gap, compared[i].bar))
		}
	}
	r.Note = fmt.Sprintf("losses: %d seeds of %d rounds of %d steps; attacks: %d rounds of 5 steps; moments begin with zero in every unit, and last in data-parallel training", o.Seeds, rounds, syncSteps, o.Siege)
	if !o.Losses {
		r.Note += "; too short to say anything of the price in loss: no bar is claimed"
	}
	return nil
}

// measure fills in the mean, the spread and the gap.
func (w *LossRow) measure(base LossRow) {
	n := float64(len(w.Loss))
	for _, x := range w.Loss {
		w.Mean += x / n
	}
	for _, x := range w.Loss {
		w.Spread += (x - w.Mean) * (x - w.Mean) / max(1, n-1)
	}
	w.Spread = rounded(math.Sqrt(w.Spread), 5)
	if base.Mean > 0 {
		w.Gap = rounded(w.Mean/base.Mean-1, 5)
	}
	w.Mean = rounded(w.Mean, 5)
}
