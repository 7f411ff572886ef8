package assignment

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// awaited are the places of the units for which a replica waits: of those without a commitment the ones whose workers
// others wait for, and that wait for no other; or, if there is none, those whose workers wait for each other and for
// none besides, but in runs of earlier rules; or those that wait for no other; or all of them.
func awaited(replica work.Units, circles bool) []int {
	g := waitsOf(replica)
	for _, is := range []func(u *work.Unit) bool{
		func(u *work.Unit) bool { return len(u.Missing) > 0 && !g.waits(u) },
		func(u *work.Unit) bool { return circles && len(u.Missing) > 0 && g.inCircle(u) },
		func(u *work.Unit) bool { return !g.waits(u) },
		func(*work.Unit) bool { return true },
	} {
		var places []int
		for _, u := range replica {
			if u.Status == work.Assigned && is(u) {
				places = append(places, int(u.Index))
			}
		}
		if len(places) > 0 {
			return places
		}
	}
	return nil
}

// A graph says which workers of a replica wait for which, directly or by others: a set of numbers for each, of as many
// bits as a replica has stages at most. The cost does not depend on how many have said that they wait.
type graph struct {
	number map[string]int
	waited [terms.MaxStages]uint64
}

func waitsOf(replica work.Units) *graph {
	g := &graph{number: map[string]int{}}
	for _, u := range replica {
		if _, ok := g.number[u.Worker]; !ok {
			g.number[u.Worker] = len(g.number)
		}
	}
	for _, u := range replica {
		for _, id := range u.Missing {
			if k, ok := g.number[id]; ok {
				g.waited[k] |= 1 << g.number[u.Worker]
			}
		}
	}
	for by := range len(g.number) {
		for k := range g.waited {
			if g.waited[k]>>by&1 == 1 {
				g.waited[k] |= g.waited[by]
			}
		}
	}
	return g
}

// waits reports whether the worker of a unit waits for one of its replica.
func (g *graph) waits(u *work.Unit) bool { return g.waited[g.number[u.Worker]] != 0 }

// inCircle reports whether all workers that the one of a unit waits for, directly or by others, wait for it
// as well. One of them is late. Those that wait for a circle, and for which none in it waits, are not in it.
func (g *graph) inCircle(u *work.Unit) bool {
	me := g.number[u.Worker]
	for k := range g.waited {
		if g.waited[me]>>k&1 == 1 && g.waited[k]>>me&1 == 0 {
			return false
		}
	}
	return true
}

// Awaits notes that a worker waits for that of another unit of its replica, and reports whether it may.
func Awaits(d *Assignment, from string, unit uint32) bool {
	u, n := d.Units[unit], d.Terms.Pipeline.Stages()
	if !staged(d) || u.Status != work.Assigned || !slices.ContainsFunc(d.Replica(d.Terms, unit),
		func(o *work.Unit) bool {
			return o.Status == work.Assigned && o.Worker == from &&
				(d.Rules < progress.HiddenLinks || d.Terms.Pipeline.Linked(o.Index%n, unit%n))
		}) {
		return false
	}
	v := d.Unit(&d.RoundState, int(unit))
	v.Missing = append(slices.Clip(v.Missing), from)
	return true
}
