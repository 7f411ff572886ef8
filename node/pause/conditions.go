// Package pause decides when a worker sets its work aside for the owner of the machine: because the owner says so, or
// because of conditions: other processes use the processors, the machine runs on its battery, the hour, or a program
// that runs. The clock and the machine are given to it.
//
// It does not stop anything: package role says what a paused member does, and node/member does it.
package pause

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Conditions are those under which a worker pauses. The zero value has none.
type Conditions struct {
	BusyCPU Share    // of all processors, which other processes use; 0: no condition
	Battery bool     // the machine runs on its battery
	Hours   Hours    // in which it pauses
	Work    Hours    // outside of which it pauses; none: no condition
	Apps    []string // names of processes
}

// UnsupportedError says that a condition cannot be observed on this system.
type UnsupportedError struct{ Key, System string }

// Error implements error.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s reads /proc or /sys, which %s does not have", e.Key, e.System)
}

// Check returns an *UnsupportedError for a condition that cannot be observed on a system, by the name that Go has for
// it, and an error for a name that no process can have.
func (c Conditions) Check(system string) error {
	for _, x := range []struct {
		key string
		set bool
	}{{KeyBusyCPU, c.BusyCPU > 0}, {KeyBattery, c.Battery}, {KeyApps, len(c.Apps) > 0}} {
		if x.set && system != "linux" {
			return &UnsupportedError{x.key, system}
		}
	}
	for _, name := range c.Apps {
		if name == "" || strings.ContainsAny(name, "/\x00\n") {
			return fmt.Errorf("%s: %q is not the name of a process: give it without its folder, as ps -e -o comm shows it",
				KeyApps, name)
		}
	}
	return nil
}

// Keys of the conditions: flags of starling worker up, and keys of its file.
const (
	KeyBusyCPU = "pause-busy-cpu"
	KeyBattery = "pause-on-battery"
	KeyHours   = "pause-hours"
	KeyWork    = "work-hours"
	KeyApps    = "pause-apps"
)

// Share is a part of all processors in percent, as a flag: pflag.Value.
type Share int

// String implements pflag.Value.
func (s *Share) String() string {
	if *s == 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", int(*s))
}

// Type implements pflag.Value.
func (s *Share) Type() string { return "percent" }

// Set implements pflag.Value.
func (s *Share) Set(text string) error {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
	if err != nil || n < 1 || n > 100 {
		return fmt.Errorf("give a part of all processors from 1%% to 100%%")
	}
	*s = Share(n)
	return nil
}

// Hours are spans of the day by the local clock, as a flag: pflag.Value.
type Hours []span

// span is from one minute of the day up to another, past midnight if that is smaller.
type span struct{ from, to int }

// maxSpans bounds a value.
const maxSpans = 24

// String implements pflag.Value.
func (h *Hours) String() string {
	var list []string
	for _, s := range *h {
		list = append(list, fmt.Sprintf("%02d:%02d-%02d:%02d", s.from/60, s.from%60, s.to/60, s.to%60))
	}
	return strings.Join(list, ",")
}

// Type implements pflag.Value.
func (h *Hours) Type() string { return "hours" }

// Set implements pflag.Value.
func (h *Hours) Set(text string) error {
	var spans Hours
	for part := range strings.SplitSeq(text, ",") {
		from, to, ok := strings.Cut(strings.TrimSpace(part), "-")
		a, err := minute(from)
		b, wrong := minute(to)
		if !ok || err != nil || wrong != nil || a == b || len(spans) == maxSpans {
			return fmt.Errorf("give hours such as 22:00-07:00, several separated by commas, at most %d", maxSpans)
		}
		spans = append(spans, span{a, b})
	}
	*h = spans
	return nil
}

// minute reads a time of the day, hh:mm.
func minute(text string) (int, error) {
	t, err := time.Parse("15:04", text)
	return 60*t.Hour() + t.Minute(), err
}

// contain reports whether a time is within the hours.
func (h Hours) contain(t time.Time) bool {
	m := 60*t.Hour() + t.Minute()
	return slices.ContainsFunc(h, func(s span) bool {
		if s.from < s.to {
			return s.from <= m && m < s.to
		}
		return s.from <= m || m < s.to
	})
}

// changes are the times at which a span begins or ends, from the day of a time on, for two days.
func (h Hours) changes(t time.Time) (list []time.Time) {
	for day := range 3 {
		for _, s := range h {
			for _, m := range []int{s.from, s.to} {
				list = append(list, time.Date(t.Year(), t.Month(), t.Day()+day, m/60, m%60, 0, 0, t.Location()))
			}
		}
	}
	return list
}

// resting reports whether the conditions about hours pause the worker at a time.
func (c Conditions) resting(t time.Time) bool {
	return c.Hours.contain(t) || len(c.Work) > 0 && !c.Work.contain(t)
}

// worksFrom is the first time after another at which no condition about hours pauses the worker; zero: it never works.
func (c Conditions) worksFrom(t time.Time) (at time.Time) {
	for _, x := range append(c.Hours.changes(t), c.Work.changes(t)...) {
		if x.After(t) && !c.resting(x) && (at.IsZero() || x.Before(at)) {
			at = x
		}
	}
	return at
}
