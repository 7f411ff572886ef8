package schedule

import (
	"cmp"
	"math/bits"
	"slices"
)

const (
	// stageCost is the cost of the most expensive stage of a replica.
	stageCost = 1 << 16
	// mostExchanges is the largest number of exchanges by which Stages improves its first deal.
	mostExchanges = 64
)

// Stages deals the stages of replicas to workers of unequal speed so that the worker that ends last ends as early as a
// few exchanges make it: SWARM's routing (Ryabinin et al. 2023, section 3.2) as a function of the state of a run.
// flops are the operations of a stage, by stage, at least 1, and blocks[i] is the time that worker i takes for
// the same work as the others, at least 1 and at most 2^32-1. The result has the worker of unit r*N+s, stage s of N of
// replica r. Of equal workers the first gets the unit.
//
// The stages of a replica go to different workers, where there are enough: so a worker has no part of a pipeline to
// itself, and values between stages pass between two parties.
func Stages(flops []uint64, replicas int, blocks []uint32) []int {
	n := len(flops)
	d := &deal{blocks: blocks, load: make([]uint64, len(blocks)), owners: make([]int, n*replicas),
		has: make([][]uint32, replicas)}
	d.cost = StageCosts(flops)
	for r := range d.has {
		d.has[r] = make([]uint32, len(blocks))
	}
	order := make([]int, n)
	for s := range order {
		order[s] = s
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.cost[b], d.cost[a]) })
	for _, s := range order {
		for r := range replicas {
			d.give(r*n+s, d.soonest(r, d.cost[s]))
		}
	}
	for range mostExchanges {
		if !d.improve() {
			break
		}
	}
	return d.owners
}

// StageCosts are operations, at least 1, in parts of those of the most expensive stage, rounded up.
func StageCosts(flops []uint64) []uint64 {
	most, cost := slices.Max(flops), make([]uint64, len(flops))
	for s, f := range flops {
		high, low := bits.Mul64(f, stageCost)
		whole, rest := bits.Div64(high, low, most)
		cost[s] = whole + min(rest, 1)
	}
	return cost
}

// deal is units that workers have.
type deal struct {
	cost   []uint64   // by stage
	blocks []uint32   // by worker
	load   []uint64   // costs of the units of each worker
	has    [][]uint32 // by replica and worker: its units
	owners []int      // by unit
}

// ends is when a worker would end with a load.
func (d *deal) ends(worker int, load uint64) uint64 { return load * uint64(d.blocks[worker]) }

// give gives a unit to a worker.
func (d *deal) give(unit, worker int) {
	n := len(d.cost)
	d.owners[unit] = worker
	d.load[worker] += d.cost[unit%n]
	d.has[unit/n][worker]++
}

// take takes a unit from its worker.
func (d *deal) take(unit int) {
	n, worker := len(d.cost), d.owners[unit]
	d.load[worker] -= d.cost[unit%n]
	d.has[unit/n][worker]--
}

// soonest is the worker that would end a further unit of a cost first, of those with the fewest units of a replica.
func (d *deal) soonest(replica int, cost uint64) int {
	has, best := d.has[replica], 0
	for w := range d.blocks {
		if has[w] < has[best] ||
			has[w] == has[best] && d.ends(w, d.load[w]+cost) < d.ends(best, d.load[best]+cost) {
			best = w
		}
	}
	return best
}

// exchange is a unit that goes to another worker, or two units whose workers change places.
type exchange struct {
	unit, to int // to: a worker
	back     int // the unit that comes back; -1: none
}

// order is the order of exchanges that end equally soon.
func (x exchange) order(y exchange) int {
	return cmp.Or(cmp.Compare(x.unit, y.unit), cmp.Compare(x.back, y.back), cmp.Compare(x.to, y.to))
}

// improve makes an exchange that leaves no replica fewer workers: the one with which the worker that ends last, and the
// one that it deals with, end soonest. false: none lets both end before that worker does now.
//
// Of units of the last worker that are the same stage, and may go to a worker, it tries the first: others end equally.
// So it tries at most units times stages exchanges, and not units squared.
func (d *deal) improve() bool {
	last := 0
	for w := range d.load {
		if d.ends(w, d.load[w]) > d.ends(last, d.load[last]) {
			last = w
		}
	}
	span, n := d.ends(last, d.load[last]), len(d.cost)
	best := exchange{unit: -1}
	try := func(unit, to, back int) {
		x, goes, comes := exchange{unit, to, back}, d.cost[unit%n], uint64(0)
		if back >= 0 {
			comes = d.cost[back%n]
		}
		if comes >= goes {
			return
		}
		at := max(d.ends(last, d.load[last]-goes+comes), d.ends(to, d.load[to]+goes-comes))
		if at < span || at == span && best.unit >= 0 && x.order(best) < 0 {
			span, best = at, x
		}
	}
	first := d.leave(last, try)
	for back, w := range d.owners {
		if in := d.has[back/n]; w == last || in[last] >= in[w] {
			continue
		}
		for _, unit := range first[w] {
			try(unit, w, back)
		}
	}
	if best.unit < 0 {
		return false
	}
	d.take(best.unit)
	if best.back >= 0 {
		d.take(best.back)
		d.give(best.back, last)
	}
	d.give(best.unit, best.to)
	return true
}

// leave tries the exchanges of units of a worker within their replica, and the moves of units to workers. It returns
// for each worker the units that may move to it, one of each stage: the first.
func (d *deal) leave(last int, try func(unit, to, back int)) [][]int {
	n, first := len(d.cost), make([][]int, len(d.blocks))
	for unit, worker := range d.owners {
		if worker != last {
			continue
		}
		replica := unit / n
		for back := replica * n; back < (replica+1)*n; back++ {
			if w := d.owners[back]; w != last {
				try(unit, w, back)
			}
		}
		has := d.has[replica]
		for w, list := range first {
			if has[w] < has[last] && !slices.ContainsFunc(list, func(u int) bool { return u%n == unit%n }) {
				first[w] = append(list, unit)
				try(unit, w, -1)
			}
		}
	}
	return first
}
