package people

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/sim"
)

// Split compares the pay of a machine with that of two of half its rate, in the same company.
type Split struct {
	Days  float64 `json:"days"`
	Whole float64 `json:"whole"` // share of the pay of all workers
	Parts float64 `json:"parts"`
	Off   float64 `json:"off"` // Parts over Whole, less 1
	// share of the time since the run began in which the workers compute, weighted by their rates: of the network with
	// the machine, and of that with its halves
	BusyWhole float64 `json:"busy_whole"`
	BusyParts float64 `json:"busy_parts"`
}

// halves is crowd, with two machines of half the rate in place of the fastest.
var halves = map[string]uint64{
	"worker-0": pace / 2, "worker-1": pace, "worker-2": pace, "worker-3": pace, "worker-4": pace,
}

// split plays the network of a machine, and that of its halves.
func split(ctx context.Context, seed uint64, until time.Duration) (Split, error) {
	s := Split{Days: until.Hours() / 24}
	shares := func(rates map[string]uint64, of ...string) (share, computes float64, err error) {
		r := &rig{rates: rates, until: until, units: few, seed: seed}
		w, err := r.play(ctx)
		if err != nil {
			return 0, 0, err
		}
		receipts, err := w.Receipts()
		if err != nil {
			return 0, 0, err
		}
		var some, all uint64
		for name := range rates {
			all += earned(receipts, w.ID(name), 0)
		}
		for _, name := range of {
			some += earned(receipts, w.ID(name), 0)
		}
		computes, err = busyShare(w, r)
		return float64(some) / float64(all), computes, err
	}
	var err error
	if s.Parts, s.BusyParts, err = shares(halves, "worker-3", "worker-4"); err != nil {
		return s, err
	}
	if s.Whole, s.BusyWhole, err = shares(crowd(0), "worker-3"); err != nil {
		return s, err
	}
	s.Off = s.Parts/s.Whole - 1
	return s, nil
}

// Busy is the share of the time since a run began in which machines of a class of work compute, weighted by their
// rates.
type Busy struct {
	Class busy.Class `json:"class"`
	Units uint32     `json:"units"` // of a round
	Share float64    `json:"share"`
	Most  float64    `json:"most,omitempty"` // share that rounds of whole units allow; 0: not computed
}

// longRun is so many rounds that each worker has had its part of them.
const longRun = 300

// most is the largest share of the time in which workers can compute, over some rounds: each waits for the last of its
// units, which are whole, and of which each worker gets its part over the rounds.
func most(rates map[string]uint64, units uint32, rounds int) float64 {
	var blocks []uint32
	var speed float64 // units in a time of one for which a worker has blocks of 1
	for _, name := range slices.Sorted(maps.Keys(rates)) {
		blocks = append(blocks, uint32(1000*pace/rates[name]))
		speed += 1 / float64(blocks[len(blocks)-1])
	}
	owed, took := make([]int32, len(blocks)), 0.
	for range rounds {
		due := schedule.ShareBySpeed(units, blocks, owed)
		last := uint32(0)
		for i, n := range due.Shares {
			last = max(last, n*blocks[i])
		}
		owed, took = due.Owed, took+float64(last)
	}
	return float64(units) * float64(rounds) / speed / took
}

// busyOver plays a network whose rounds have these units.
func busyOver(ctx context.Context, seed uint64, until time.Duration, units uint32) (Busy, error) {
	r := &rig{rates: crowd(0), until: until, units: units, seed: seed}
	w, err := r.play(ctx)
	if err != nil {
		return Busy{}, err
	}
	share, err := busyShare(w, r)
	return Busy{Class: busy.Training, Units: units, Share: share, Most: most(r.rates, units, longRun)}, err
}

// busyShare is the share of the time since the run began in which the workers compute, weighted by their rates.
func busyShare(w *sim.Network, r *rig) (float64, error) {
	s, err := w.State()
	if err != nil {
		return 0, err
	}
	var worked, had float64
	for name, rate := range r.rates {
		for _, m := range s.Members {
			if m.ID == w.ID(name) {
				worked += float64(rate) * r.worked[name].Seconds()
				had += float64(rate) * (w.Now() - time.Duration(m.Since)*block).Seconds()
			}
		}
	}
	return worked / had, nil
}
