package people

import (
	"context"
	"time"

	"github.com/starling-network/starling/sim"
)

// Split compares the pay of a machine with that of two of half its rate, in the same company.
type Split struct {
	Days  float64 `json:"days"`
	Whole float64 `json:"whole"` // share of the pay of all workers
	Parts float64 `json:"parts"`
	Off   float64 `json:"off"` // Parts over Whole, less 1
	// share of the time since the run began in which the workers compute, weighted by their rates; of the network with
	// the whole machine
	Busy float64 `json:"busy"`
}

// split plays the network of a machine, and that of its halves.
func split(ctx context.Context, seed uint64, until time.Duration) (Split, error) {
	s := Split{Days: until.Hours() / 24}
	shares := func(rates map[string]uint64, of ...string) (share float64, err error) {
		r := &rig{rates: rates, until: until, seed: seed}
		w, err := r.play(ctx)
		if err != nil {
			return 0, err
		}
		receipts, err := w.Receipts()
		if err != nil {
			return 0, err
		}
		var some, all uint64
		for name := range rates {
			all += earned(receipts, w.ID(name), 0)
		}
		for _, name := range of {
			some += earned(receipts, w.ID(name), 0)
		}
		s.Busy = busy(w, rates)
		return float64(some) / float64(all), nil
	}
	var err error
	if s.Parts, err = shares(map[string]uint64{"worker-0": pace / 2, "worker-1": pace, "worker-2": pace,
		"worker-3": pace, "worker-4": pace}, "worker-3", "worker-4"); err != nil {
		return s, err
	}
	if s.Whole, err = shares(crowd(0), "worker-3"); err != nil {
		return s, err
	}
	s.Off = s.Parts/s.Whole - 1
	return s, nil
}

// busy is the share of the time since the run began in which the workers compute, weighted by their rates.
func busy(w *sim.Network, rates map[string]uint64) float64 {
	s, err := w.State()
	if err != nil {
		return 0
	}
	var worked, had float64
	for name, rate := range rates {
		for _, m := range s.Members {
			if m.ID == w.ID(name) {
				worked += float64(rate) * w.Usage(name).Worked.Seconds()
				had += float64(rate) * (w.Now() - time.Duration(m.Since)*block).Seconds()
			}
		}
	}
	return worked / had
}
