package pause

import (
	"fmt"
	"strings"
	"time"
)

// A condition that holds only now and then would stop and start the work all the time. It pauses the worker when it
// has held for long enough, and not before it has failed for Rest does the pause end.
const (
	Rest      = time.Minute
	busyFor   = 3 * time.Second // other processes use the processors
	busyBelow = 0.75            // of the bound: below it the processors count as free
)

// gate is a condition with hysteresis.
type gate struct {
	on   bool
	held time.Time // since when the condition holds; zero: it does not
	free time.Time // since when it fails; zero: it does not
}

// step takes in whether the condition holds, and whether it fails: neither, between two bounds.
func (g *gate) step(now time.Time, holds, fails bool, enter time.Duration) {
	g.held, g.free = since(g.held, holds, now), since(g.free, fails, now)
	switch {
	case !g.on && holds && now.Sub(g.held) >= enter:
		g.on = true
	case g.on && fails && now.Sub(g.free) >= Rest:
		g.on = false
	}
}

// since is the time since when something is so.
func since(before time.Time, is bool, now time.Time) time.Time {
	switch {
	case !is:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

// watch decides by the conditions.
type watch struct {
	Conditions
	busy, battery, apps gate
	running             []string // when the condition held last
}

// reason is why a worker is paused, and until when; a zero time: that is not known.
type reason struct {
	why   string
	until time.Time
}

// step takes in a reading. Without one the conditions stay as they are, but for the hours.
func (w *watch) step(now time.Time, r *Reading) (reasons []reason) {
	if r != nil {
		if bound := float64(w.BusyCPU) / 100; bound > 0 && r.Others >= 0 {
			w.busy.step(now, r.Others >= bound, r.Others < bound*busyBelow, busyFor)
		}
		w.battery.step(now, w.Battery && r.Battery, !r.Battery, 0)
		w.apps.step(now, len(r.Running) > 0, len(r.Running) == 0, 0)
		if len(r.Running) > 0 {
			w.running = r.Running
		}
	}
	if w.resting(now) {
		key, hours := KeyHours, w.Hours
		if !w.Hours.contain(now) {
			key, hours = KeyWork, w.Work
		}
		reasons = append(reasons, reason{fmt.Sprintf("the hour (%s: %s)", key, hours.String()), w.worksFrom(now)})
	}
	for _, x := range []struct {
		g   *gate
		why string
	}{
		{&w.busy, fmt.Sprintf("other processes use the processors (%s: %s)", KeyBusyCPU, w.BusyCPU.String())},
		{&w.battery, "the machine runs on its battery (" + KeyBattery + ")"},
		{&w.apps, fmt.Sprintf("%s runs (%s)", strings.Join(w.running, ", "), KeyApps)},
	} {
		if x.g.on {
			reasons = append(reasons, reason{why: x.why})
		}
	}
	return reasons
}
