package assignment

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
)

// awaited are the places of the units for which a replica waits: of those without a commitment the ones whose workers
// others wait for, and that wait for no other; or, if there is none, those whose workers wait for each other and for
// none besides, but in runs of earlier rules; or those that wait for no other; or all of them.
func awaited(replica work.Units, circles bool) []int {
	waits := func(u *work.Unit) bool {
		return slices.ContainsFunc(replica, func(o *work.Unit) bool { return slices.Contains(o.Missing, u.Worker) })
	}
	for _, is := range []func(u *work.Unit) bool{
		func(u *work.Unit) bool { return len(u.Missing) > 0 && !waits(u) },
		func(u *work.Unit) bool { return circles && len(u.Missing) > 0 && inCircle(replica, u) },
		func(u *work.Unit) bool { return !waits(u) },
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

// inCircle reports whether all workers that the one of a unit waits for, directly or by others, wait for it
// as well. One of them is late. Those that wait for a circle, and for which none in it waits, are not in it.
func inCircle(replica work.Units, u *work.Unit) bool {
	return !slices.ContainsFunc(waitsFor(replica, u.Worker), func(w string) bool {
		return !slices.Contains(waitsFor(replica, w), u.Worker)
	})
}

// waitsFor lists the workers of a replica that a worker waits for, directly or by others.
func waitsFor(replica work.Units, worker string) (list []string) {
	for next := []string{worker}; len(next) > 0; next = next[1:] {
		for _, o := range replica {
			if slices.Contains(o.Missing, next[0]) && !slices.Contains(list, o.Worker) {
				list, next = append(list, o.Worker), append(next, o.Worker)
			}
		}
	}
	return list
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
