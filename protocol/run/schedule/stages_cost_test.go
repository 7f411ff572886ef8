package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// every is improve by trying all exchanges.
func (d *deal) every() bool {
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

// Stages makes the exchanges that one finds who tries all of them.
func TestExchangesAreTheBestOfAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	changed := 0
	for range 400 {
		n, replicas := 2+r.IntN(4), 1+r.IntN(8)
		d := &deal{blocks: make([]uint32, 1+r.IntN(8)), owners: make([]int, n*replicas), has: make([][]uint32, replicas)}
		d.load = make([]uint64, len(d.blocks))
		for i := range d.blocks {
			d.blocks[i] = 1 + r.Uint32N(4)
		}
		for range n {
			d.cost = append(d.cost, 1+r.Uint64N(4))
		}
		for i := range d.has {
			d.has[i] = make([]uint32, len(d.blocks))
		}
		for unit := range d.owners {
			d.give(unit, r.IntN(len(d.blocks)))
		}
		all := &deal{cost: d.cost, blocks: d.blocks, load: slices.Clone(d.load), owners: slices.Clone(d.owners)}
		for _, has := range d.has {
			all.has = append(all.has, slices.Clone(has))
		}
		for ; all.every(); changed++ {
			if !d.improve() || !slices.Equal(d.owners, all.owners) {
				t.Fatalf("%v of %v in %v: %v, and the best exchange makes %v", d.cost, d.blocks, d.has, d.owners, all.owners)
			}
		}
		if d.improve() {
			t.Fatalf("%v: an exchange that is none", d.owners)
		}
	}
	if changed < 400 {
		t.Errorf("%d exchanges", changed)
	}
}

// BenchmarkFewWorkers deals the most units of a round to two workers, with many exchanges. Every validator does so when
// a round begins.
func BenchmarkFewWorkers(b *testing.B) {
	for b.Loop() {
		Stages([]uint64{85, 128}, 512, []uint32{12, 24})
	}
}
