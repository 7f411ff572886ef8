// Package people measures promises. On simulated networks: that a machine earns as much as was estimated before it
// joined, that its halves earn as much as the machine, that it is busy, that the members of a run get few bytes from
// far away, and that a release reaches all of them without a missed deadline. On networks of processes (journey): that
// a machine is soon paid, that it pauses at once, and that a gateway loses no job.
//
// The simulated networks have the real rules, application, roles and signatures; only time and links are simulated. A
// block takes two minutes, so that a week has five thousand of them.
package people

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/people/journey"
	"github.com/starling-network/starling/node/busy"
)

// Options of a measurement.
type Options struct {
	Days     int // of a network; a machine joins after a third of them, and after two at least
	Seeds    int
	Machines int // that join, each a network of its own, of 1 to 3 speeds
	// Quick plays eight or twelve hours of each network in place of Days, in which no machine joins, and fewer rounds.
	Quick    bool
	Progress func(string)
}

// Report is what was measured.
type Report struct {
	Income []Income `json:"income"`
	Split  []Split  `json:"split"`
	Busy   []Busy   `json:"busy"`
	Place  []Place  `json:"place"`

	Upgrade []Upgrade `json:"upgrade"`

	Journeys *journey.Report `json:"journeys"`

	LeftOut []string `json:"left_out"` // what a quick measurement does not measure

	Bars []benchmark.Bar `json:"bars"`
}

// rollout is the time within which the nodes of a network take a release.
const rollout = 10 * time.Minute

// Measure plays the networks. An option without a meaning wraps benchmark.ErrOption.
func Measure(ctx context.Context, o Options) (*Report, error) {
	if err := benchmark.Positive("seeds", o.Seeds); err != nil {
		return nil, err
	}
	if o.Days < 3 || o.Machines < 1 || o.Machines > 3 {
		return nil, fmt.Errorf("%w: %d days and %d machines: give at least 3 days, and 1 to 3 machines",
			benchmark.ErrOption, o.Days, o.Machines)
	}
	until, joins := time.Duration(o.Days)*day, max(2*day, time.Duration(o.Days)*day/3)
	rates, classes := []uint64{pace, pace / 2, 2 * pace}[:o.Machines], joining[:o.Machines]
	span, rounds, switching := until, uint32(16), uint32(12)
	r := &Report{LeftOut: []string{}}
	if o.Quick { // three whole rounds of twelve units, and as much of the others as tells their shares
		until, span, rates, classes = 12*time.Hour, 8*time.Hour, nil, nil
		rounds, switching = 3, 6
		r.LeftOut = leftOut
	}
	if err := r.play(ctx, o, plays{until, joins, span, rates, classes, rounds,
		switching}); err != nil {
		return nil, err
	}
	var err error
	if r.Journeys, err = journey.Measure(ctx, journey.Options{Quick: o.Quick, Progress: o.Progress}); err != nil {
		return nil, err
	}
	r.judge()
	return r, nil
}

// leftOut is what a quick measurement does not measure.
var leftOut = []string{
	"estimates of machines that join, and their pay",
	"networks of more than twelve hours, and of other seeds",
	"models of the 50 jobs of a gateway, which are queued and not awaited",
}

// judge compares the figures with the bars.
func (r *Report) judge() {
	if len(r.Income) > 0 {
		r.Bars = append(r.Bars,
			benchmark.AtMost("largest difference of an estimate from the pay after it", worst(r.Income), 0.25))
	}
	r.Bars = append(r.Bars,
		benchmark.AtMost("largest difference of the pay of two halves from that of the machine", uneven(r.Split), 0.02),
		benchmark.AtLeast("least share of the time in which workers compute that are due three units a round, "+
			"of the most that rounds of whole units allow", leastBusy(r.Busy, busy.Training, few), 0.9),
		benchmark.AtLeast("least share of the time in which workers compute that are due twelve units a round",
			leastBusy(r.Busy, busy.Training, many), 0.9),
		benchmark.AtLeast("least share of the time in which a verifier computes that is due more than it does",
			leastBusy(r.Busy, busy.Verification, 0), 0.9),
		benchmark.AtLeast("least share of the time in which machines draw answers that are due more than they draw",
			leastBusy(r.Busy, busy.Generation, 0), 0.9),
		benchmark.AtMost("largest part of the bytes from other regions that members receive where regions are declared",
			farthest(r.Place), 0.5),
		benchmark.AtMost("deadlines missed, stakes slashed and runs spoilt while a release reaches twenty nodes under load",
			float64(spoilt(r.Upgrade)), 0),
	)
	r.Bars = append(r.Bars, r.Journeys.Bars...)
}

// worst is the largest difference of estimates from the pay.
func worst(all []Income) (off float64) {
	for _, in := range all {
		off = max(off, math.Abs(in.Off))
	}
	return off
}

// uneven is the largest difference that a split makes.
func uneven(all []Split) (off float64) {
	for _, s := range all {
		off = max(off, math.Abs(s.Off))
	}
	return off
}

// spoilt counts what changes of the program cost.
func spoilt(all []Upgrade) (n int) {
	for _, u := range all {
		n += u.Missed
		if u.Slashed > 0 {
			n++
		}
		if !u.Whole {
			n++
		}
	}
	return n
}

// leastBusy is the least share of a class in rounds of these units (0: of any), of few of which only a part of the time
// can be used.
func leastBusy(all []Busy, c busy.Class, units uint32) float64 {
	least := 1.
	for _, b := range all {
		if b.Class == c && (units == 0 || b.Units == units) {
			share := b.Share
			if units == few {
				share /= b.Most
			}
			least = min(least, share)
		}
	}
	return least
}

// farthest is the largest ratio of the bytes from other regions.
func farthest(all []Place) (ratio float64) {
	for _, p := range all {
		ratio = max(ratio, p.Ratio)
	}
	return ratio
}
