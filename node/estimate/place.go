package estimate

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Place is a free place of a run in progress, which the machine may take.
type Place struct {
	Job string `json:"job"`
	// of the units of a round, the part that the machine is dealt by its rate
	Share float64 `json:"share"`
	Now   float64 `json:"round_blocks"`      // that a round takes
	With  float64 `json:"round_blocks_with"` // that it takes with the machine
	Pays  uint64  `json:"round_uzen"`        // for all units of a round, less the fee
	// that are left, and that the rest of the budget pays for
	Rounds float64 `json:"rounds"`
	// blocks until it is paid: it does one round on trial, and waits until as many are final as are open now
	Starts float64 `json:"start_blocks"`
	// that a beacon draws the machine for the place, of 1: others wait for it, too
	Chance float64 `json:"chance"`
}

// Days is how far an estimate looks ahead.
const Days = 7

// day is the mean income of a day of the next Days, in uzen, if the machine takes the place and earns the other amount
// once the run is over. blocks are those of a day.
func (p Place) day(other, blocks float64) float64 {
	lasts := min(1, p.Rounds*p.With/(Days*blocks))
	paid := max(0, lasts-p.Starts/(Days*blocks))
	return paid*p.Share*float64(p.Pays)*blocks/p.With + (1-lasts)*other
}

// InPlaces is the income of a machine that joins when runs have places for it: their rounds become shorter with it, and
// pay more in a day, so that it does not only divide the present pay of the workers. Without places it is the range as
// given.
func InPlaces(r Range, places []Place, blocks float64) Range {
	if len(places) == 0 {
		return r
	}
	var sum float64
	for _, p := range places { // it takes one of them
		sum += p.Chance*p.day(float64(r.Median), blocks) + (1-p.Chance)*float64(r.Median)
	}
	r.Median = uint64(sum / float64(len(places)))
	return Range{min(r.Low, r.Median), r.Median, max(r.High, r.Median)}
}

// crewOf are the workers of a run that learn, in the order of their accounts.
func crewOf(s run.State) (all []crew.Member) {
	for _, m := range s.Members {
		if m.Role == crew.Worker && !m.Generates && m.Participating() {
			all = append(all, m)
		}
	}
	return all
}

// free are the places of a run that no worker has; 0: it takes none any more.
func free(o market.Order, s run.State) int {
	if s.Over() {
		return 0
	}
	return max(0, int(o.Workers.Max)-int(s.Present(crew.Worker)))
}

// place is the place of a run for a machine of a rate that asks a price; nil: it has none, or no speed of its workers
// is known yet. waiting are the other offers that may take it, lasted the blocks that a round took lately, 0 if not
// known.
func place(o market.Order, s run.State, m Machine, waiting int, lasted float64, left uint64, fee uint32) *Place {
	free := free(o, s)
	if free == 0 {
		return nil
	}
	workers := crewOf(s)
	times, rates := make([]uint32, len(workers), len(workers)+1), make([]uint64, len(workers), len(workers)+1)
	for i, w := range workers {
		times[i], rates[i] = w.Speed, w.Rate
	}
	if !slices.ContainsFunc(times, func(t uint32) bool { return t > 0 }) {
		return nil
	}
	times = schedule.ByRate(append(times, 0), append(rates, m.Rate))
	if slices.Contains(times, 0) {
		return nil
	}
	now, _ := round(s.Terms, times[:len(workers)])
	with, share := round(s.Terms, times)
	rest := max(0, lasted-now) // of a round, in which updates travel and votes are counted
	work, checked := cost.Highest(s)
	price := max(work, m.Price)
	pays := cost.Units(s.Terms, price, max(price, cost.Dearest(s, crew.Generator)))
	if pays == 0 {
		return nil
	}
	audits := float64(cost.Units(s.Terms, checked, checked)) * float64(s.Terms.Floor()) / 1e6
	rounds := max(0, float64(left)/(float64(pays)+audits)-float64(len(s.Open)))
	return &Place{Job: o.ID, Share: share, Now: now + rest, With: with + rest, Pays: pays - market.Share(pays, fee),
		Starts: float64(len(s.Open)+1) * (with + rest),
		Rounds: min(rounds, float64(s.Terms.Rounds-min(s.Round, s.Terms.Rounds))),
		Chance: min(1, float64(free)/float64(waiting+1))}
}

// dealtRounds is over how many rounds the dealing of units is averaged.
const dealtRounds = 64

// round is how many blocks the units of a round take, in the mean, workers that need these times for one, in 1/256
// block, and the part of the units that the last of them gets.
func round(t terms.Terms, times []uint32) (blocks, last float64) {
	var speed float64 // units in 1/256 block
	for _, time := range times {
		speed += 1 / float64(time)
	}
	last = 1 / float64(times[len(times)-1]) / speed
	if t.Sizes != nil || t.Pipeline.Stages() > 1 {
		return float64(t.Units) / speed / 256, last // their dealing is another one, without what rounding leaves
	}
	owed := make([]int32, len(times))
	for range dealtRounds {
		due := schedule.ShareBySpeed(t.Units, times, owed)
		owed = due.Owed
		var longest float64
		for i, n := range due.Shares {
			longest = max(longest, float64(n)*float64(times[i]))
		}
		blocks += longest / 256 / dealtRounds
	}
	return blocks, last
}

// recent is over how many of its latest rounds the time of a round is averaged.
const recent = 24

// lasted is how many blocks the latest rounds of a run took, in the mean, with the workers that it has now; 0: there
// was none since the last of them joined.
func lasted(ctx context.Context, c *client.Client, job string, s run.State) (float64, error) {
	var since int64
	for _, m := range crewOf(s) {
		since = max(since, m.Since)
	}
	at := func(round uint32) (int64, error) {
		e, err := c.Training.Lineage(ctx, job, round)
		if errors.Is(err, client.ErrNotFound) {
			return 0, nil
		}
		return e.Height, err
	}
	last, err := at(s.Round)
	if err != nil || last == 0 {
		return 0, err
	}
	for n := min(recent, s.Round-1); n > 0; n /= 2 {
		first, err := at(s.Round - n)
		if err != nil {
			return 0, err
		}
		if first > since {
			return float64(last-first) / float64(n), nil
		}
	}
	return 0, nil
}

// places reads the places of runs in progress.
func (a *asked) places(ctx context.Context, c *client.Client, m Machine, book *market.OrderBook, lots []market.Listing,
	running []market.Order) (all []Place, err error) {
	all = []Place{}
	params, err := c.Market.Params(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range running {
		s, err := c.Training.Run(ctx, o.ID)
		if err != nil {
			return nil, err
		}
		if free(o, s) == 0 {
			continue
		}
		e, err := c.Market.Escrow(ctx, o.ID)
		if err != nil {
			return nil, err
		}
		took, err := lasted(ctx, c, o.ID, s)
		if err != nil {
			return nil, err
		}
		waiting := 0
		for _, l := range lots {
			if l.Denom == o.Coin.Denom && l.Role == crew.Worker && l.ID != m.Account && s.MayJoin(l.ID, crew.Worker) &&
				book.Unfit(o, crew.Worker, l.ID) == market.Fits {
				waiting++
			}
		}
		if p := place(o, s, m, waiting, took, e.Remaining(), params.FeePPM); p != nil {
			all = append(all, *p)
		}
	}
	slices.SortFunc(all, func(x, y Place) int { return cmp.Compare(x.Job, y.Job) })
	return all, nil
}
