package people

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/starling-network/starling/node/estimate"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/sim"
)

// Income compares the estimate for a machine before it joins with its pay afterwards.
type Income struct {
	Class    string         `json:"class"`
	Rate     uint64         `json:"rate"`       // operations a second
	Joined   float64        `json:"join_day"`   // after the start of the network
	Days     float64        `json:"days"`       // of pay
	Estimate estimate.Range `json:"estimate"`   // uzen a day
	Earned   uint64         `json:"earned_day"` // uzen, from the join on
	Since    estimate.Since `json:"since_first_pay"`
	Off      float64        `json:"off"` // the median of the estimate over Earned, less 1
}

const late = "late" // the machine that joins

// income plays a network of workers that a machine of a rate joins, and estimates its income before it does.
func income(ctx context.Context, seed, rate uint64, joins, until time.Duration) (Income, error) {
	return incomeIn(ctx, &rig{rates: crowd(seed), units: few, seed: seed}, kind{rate, 0}, joins, until)
}

// incomeOfClass is income in the network of machines of several classes.
func incomeOfClass(ctx context.Context, seed uint64, m kind, joins, until time.Duration) (Income, error) {
	r := &rig{rates: map[string]uint64{}, cards: map[string]uint64{late: m.memory}, units: many, seed: seed}
	for name, k := range mixed {
		r.rates[name], r.cards[name] = k.rate, k.memory
	}
	return incomeIn(ctx, r, m, joins, until)
}

func incomeIn(ctx context.Context, r *rig, m kind, joins, until time.Duration) (Income, error) {
	in := Income{Rate: m.rate, Joined: joins.Hours() / 24, Days: (until - joins).Hours() / 24}
	var kept estimate.Kept
	r.late, r.until = map[string]time.Duration{late: joins}, until
	r.rates[late] = m.rate
	r.looks = []look{{joins - block, func(w *sim.Network) error {
		report, err := estimate.Of(ctx, w.Chain(), w.Height(), block, estimate.Machine{Hardware: m.hardware(),
			Measured: estimate.Measured{Rate: m.rate, Took: gauged(m.rate)}, Price: price, Stake: sim.Funds,
		})
		if err == nil {
			in.Estimate, in.Class = report.Income, report.Class
			kept = estimate.Kept{At: time.Unix(0, 0).Add(w.Now()), Height: w.Height(), Income: report.Income}
		}
		return err
	}}}
	w, err := r.play(ctx)
	if err != nil {
		return in, err
	}
	receipts, err := w.Receipts()
	if err != nil {
		return in, err
	}
	var pays []estimate.Pay
	for _, r := range receipts {
		if r.Who == w.ID(late) && r.Kind == reward.Work {
			pays = append(pays, estimate.Pay{Height: r.Height, Amount: r.Amount})
		}
	}
	came := kept.Came(pays, w.Height(), time.Unix(0, 0).Add(w.Now()))
	if in.Earned = came.Earned; came.Since == nil {
		return in, fmt.Errorf("people: a machine of %d operations a second earned %d uzen a day in %.1f days", m.rate,
			in.Earned, in.Days)
	}
	in.Since, in.Off = *came.Since, float64(in.Estimate.Median)/float64(in.Earned)-1
	return in, nil
}

// gauged is how long the program of a measurement takes a machine: whole steps within four blocks, as in package sim.
func gauged(rate uint64) time.Duration {
	const step = registry.Segments * registry.StepFlops
	steps := uint64(float64(rate) * (4 * block).Seconds() / step)
	return time.Duration(float64(max(steps, 1)*step) / float64(rate) * float64(time.Second))
}

// crowd are the workers of a network before others join: of three speeds, or, with a seed, of drawn ones between the
// slowest and the fastest of these.
func crowd(seed uint64) map[string]uint64 {
	if seed == 0 {
		return map[string]uint64{"worker-0": pace / 2, "worker-1": pace, "worker-2": pace, "worker-3": 2 * pace}
	}
	rates, r := map[string]uint64{}, rand.New(rand.NewPCG(seed, 1))
	for i := range 4 {
		rates[fmt.Sprint("worker-", i)] = uint64(pace/2 + r.IntN(3*pace/2))
	}
	return rates
}
