package schedule

import (
	"cmp"
	"math/bits"
	"slices"
)

const (
	// stageCost is the cost of the most expensive stage of a replica.
	stageCost = 1 << 16
	// mostExchanges bounds how often Stages improves what it has dealt.
	mostExchanges = 64
)

// Stages deals the stages of replicas to workers of unequal speed so that the worker that ends last ends as early as a
// few exchanges make it: SWARM's routing (Ryabinin et al. 2023, section 3.2) as a function of the state of a run.
// flops are the operations of a stage, by stage, at least 1, and blocks[i] is the time that worker i takes for
// the same work as the others, at least 1 and at most 2^32-1. The result has the worker of unit r*N+s, stage s of N of
// replica r. In a tie it is the first of the workers.
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

// improve makes an exchange that leaves no replica fewer workers: the one with which the worker that ends last, and the
// one that it deals with, end soonest. false: none lets both end before that worker does now.
func (d *deal) improve() bool {
	last := 0
	for w := range d.load {
		if d.ends(w, d.load[w]) > d.ends(last, d.load[last]) {
			last = w
		}
	}
	span, n := d.ends(last, d.load[last]), len(d.cost)
	best := exchange{unit: -1}
	try := func(x exchange, comes uint64) {
		goes := d.cost[x.unit%n]
		if comes >= goes {
			return
		}
		at := max(d.ends(last, d.load[last]-goes+comes), d.ends(x.to, d.load[x.to]+goes-comes))
		if at < span {
			span, best = at, x
		}
	}
	for unit, worker := range d.owners {
		if worker != last {
			continue
		}
		has := d.has[unit/n]
		for w := range d.blocks {
			if has[w] < has[last] {
				try(exchange{unit, w, -1}, 0)
			}
		}
		for back, w := range d.owners {
			if in := d.has[back/n]; w == last || unit/n != back/n && (has[w] >= has[last] || in[last] >= in[w]) {
				continue
			}
			try(exchange{unit, w, back}, d.cost[back%n])
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
