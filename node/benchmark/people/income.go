package people

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/starling-network/starling/node/estimate"
	"github.com/starling-network/starling/sim"
)

// Income compares the estimate for a machine before it joins with its pay afterwards.
type Income struct {
	Rate     uint64         `json:"rate"`       // operations a second
	Joined   float64        `json:"join_day"`   // after the start of the network
	Days     float64        `json:"days"`       // of pay
	Estimate estimate.Range `json:"estimate"`   // uzen a day
	Earned   uint64         `json:"earned_day"` // uzen
	Off      float64        `json:"off"`        // the median of the estimate over the pay, less 1
}

// income plays a network that a machine of a rate joins, and estimates its income before it does.
func income(ctx context.Context, seed, rate uint64, joins, until time.Duration) (Income, error) {
	const late = "late"
	in := Income{Rate: rate, Joined: joins.Hours() / 24, Days: (until - joins).Hours() / 24}
	var from int64
	r := &rig{rates: crowd(seed), late: map[string]time.Duration{late: joins}, until: until, units: few, seed: seed}
	r.rates[late] = rate
	r.looks = []look{{joins - block, func(w *sim.Network) error {
		from = w.Height()
		report, err := estimate.Of(ctx, w.Chain(), from, block, estimate.Machine{
			Measured: estimate.Measured{Rate: rate, Took: 4 * block}, Price: price, Stake: 1,
		})
		if err == nil {
			in.Estimate = report.Income
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
	in.Earned = uint64(float64(earned(receipts, w.ID(late), from)) / in.Days)
	if in.Earned == 0 {
		return in, fmt.Errorf("people: a machine of %d operations a second earned nothing in %.1f days", rate, in.Days)
	}
	in.Off = float64(in.Estimate.Median)/float64(in.Earned) - 1
	return in, nil
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
