// Package estimate estimates the income of a machine on a network before it joins: from the pay of the workers that the
// network has measured, from the orders that its offer would fit, and from the electricity that it takes. It promises
// nothing: seats are drawn, and orders come and go. The command starling worker estimate shows it.
package estimate

import (
	"math"
	"slices"

	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Range is an income, in uzen a day.
type Range struct {
	Low    uint64 `json:"low_uzen"`    // a quarter of the workers would earn less for their rate
	Median uint64 `json:"median_uzen"` //
	High   uint64 `json:"high_uzen"`   // a quarter of them earned more
}

// Earner is the pay of a measured worker in a window of blocks.
type Earner struct {
	ID     string
	Rate   uint64 // measured operations a second
	Blocks int64  // of the window, since it registered
	Paid   uint64 // uzen, for units and by epochs
}

// part of the window for which a worker must have been registered to count.
const part = 24

// Earners are the workers whose pay in the window of blocks (from, to] counts: they were measured, are not barred,
// have been registered for a twenty-fourth of it, and offer work or were paid for some. offers names the accounts that
// offer work as workers. Of the receipts of runs and epochs those of other heights are left out.
func Earners(all []registry.Participant, offers map[string]bool, receipts []reward.Receipt,
	from, to int64) []Earner {
	paid := map[string]uint64{}
	for _, r := range receipts {
		if r.Height > from && r.Height <= to && earned(r) && r.Coin.Own() {
			paid[r.Who] += r.Amount
		}
	}
	var found []Earner
	for _, p := range all {
		blocks := to - max(from, p.Since)
		works := p.Has(crew.Worker) && !p.Jailed && p.Rate > 0
		if works && blocks*part >= to-from && blocks > 0 && (offers[p.ID] || paid[p.ID] > 0) {
			found = append(found, Earner{p.ID, p.Rate, blocks, paid[p.ID]})
		}
	}
	return found
}

// earned reports whether a receipt is income of a worker: the pay of a unit, or a reward of an epoch.
func earned(r reward.Receipt) bool {
	switch r.Kind {
	case reward.Work:
		return r.Role == crew.Worker
	case reward.Base, reward.WorkReward, reward.Bandwidth:
		return true
	}
	return false
}

// Spread is the income of a machine of a rate, if it earns for its rate as much as the workers did: a quarter of them
// less than the low figure, a quarter more than the high one. day is the number of blocks in a day. A machine that
// joins them takes its share of their pay, as orders do not grow with it: low and median are less by that, and high is
// not, as there may be orders that wait for machines. Without workers the income is zero.
func Spread(workers []Earner, rate uint64, joins bool, day float64) Range {
	if len(workers) == 0 {
		return Range{}
	}
	all := 0.                            // operations a second
	per := make([]float64, len(workers)) // uzen for an operation a second, in a day
	for i, w := range workers {
		per[i] = float64(w.Paid) / float64(w.Rate) / float64(w.Blocks) * day
		all += float64(w.Rate)
	}
	slices.Sort(per)
	share := 1.
	if joins {
		share = all / (all + float64(rate))
	}
	at := func(quantile, share float64) uint64 {
		i := min(max(int(math.Ceil(quantile*float64(len(per))))-1, 0), len(per)-1)
		return uint64(per[i] * float64(rate) * share)
	}
	return Range{at(0.25, share), at(0.5, share), at(0.75, 1)}
}

// Paid is how many of the workers were paid.
func Paid(workers []Earner) (n int) {
	for _, w := range workers {
		if w.Paid > 0 {
			n++
		}
	}
	return n
}

// Power is the electric power of a machine while it works, all day, and the prices that an income is compared with.
type Power struct {
	Watts  float64 // power for the work, in addition to that of the idle machine
	PerKWh float64 // price of electricity, in any currency
	OfAZen float64 // price of a ZEN in that currency; 0: unknown
}

// Balance compares the electricity of a day with an income, in the currency of the price of electricity.
type Balance struct {
	KWh  float64 `json:"kwh"`  // a day
	Cost float64 `json:"cost"` // a day
	// price of a ZEN at which the median income pays for the electricity; 0: there is no income
	BreakEven float64 `json:"break_even_zen_price,omitempty"`
	// median income less the electricity of a day; absent without a price of a ZEN
	Net *float64 `json:"net,omitempty"`
}

// Balance compares an income with the electricity that it takes.
func (p Power) Balance(income Range) Balance {
	b := Balance{KWh: p.Watts * 24 / 1000}
	b.Cost = b.KWh * p.PerKWh
	zen := float64(income.Median) / 1e6
	if zen > 0 {
		b.BreakEven = b.Cost / zen
	}
	if p.OfAZen > 0 {
		net := zen*p.OfAZen - b.Cost
		b.Net = &net
	}
	return b
}
