package sim

import (
	"fmt"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"maps"
	"slices"
	"testing"
	"time"
)

// churning is a job of many short rounds.
func churning(t testing.TB) Config {
	t.Helper()
	c := small(t)
	if lasting == nil {
		var err error
		if lasting, err = NewJob(Size{Rounds: 12, Units: 4, Steps: 6, Segment: 3}); err != nil {
			t.Fatal(err)
		}
	}
	c.Job, c.Deadline, c.MaxBlocks = lasting, 12, 1500
	return c
}

var lasting *Job

// A change is one way in which machines come and go while a run goes on. Whatever it is, the run ends with the model
// that the undisturbed one ends with, nothing is paid twice and nobody is slashed.
type change struct {
	name   string
	change func(c *Config)
	works  []string // have earned something
	out    map[string]string
	away   []string // may lose a little stake, for what they did not open in time
	waits  uint32   // rounds from joining to the first unit, at most; 0: nobody need get one
}

func comes(r crew.Role, at int, names ...string) (list []Newcomer) {
	for _, name := range names {
		list = append(list, Newcomer{Name: name, Role: r, At: time.Duration(at) * time.Second})
	}
	return list
}

func changes() []change {
	return []change{
		{name: "a worker joins", waits: 2, works: []string{"new"}, change: func(c *Config) {
			c.Most, c.Joins = 5, comes(crew.Worker, 25, "new")
		}},
		// In the round that it joins in there is nothing yet that it could reproduce.
		{name: "a worker joins before anything is committed", waits: 3, works: []string{"new"}, change: func(c *Config) {
			c.Most, c.Joins = 5, comes(crew.Worker, 5, "new")
		}},
		{name: "nobody joins where there is no place", change: func(c *Config) { c.Joins = comes(crew.Worker, 25, "new") }},
		{name: "a worker leaves", out: map[string]string{w1: reason.Left}, works: []string{w1}, change: func(c *Config) {
			c.Leaves = map[string]time.Duration{w1: 40 * time.Second}
		}},
		{name: "a worker leaves in the middle of its first unit", out: map[string]string{w1: reason.Left},
			works: []string{w1}, change: func(c *Config) {
				c.Unit = 8 * time.Second
				c.Leaves = map[string]time.Duration{w1: 8 * time.Second}
			}},
		{name: "a verifier leaves", out: map[string]string{v1: reason.Left}, change: func(c *Config) {
			c.Leaves = map[string]time.Duration{v1: 40 * time.Second}
		}},
		{name: "a verifier takes the place of another", out: map[string]string{v1: reason.Left}, works: []string{"new"},
			change: func(c *Config) {
				c.Leaves = map[string]time.Duration{v1: 30 * time.Second}
				c.Joins = comes(crew.Verifier, 25, "new")
			}},
		{name: "a worker crashes and is back", works: []string{w1}, change: func(c *Config) {
			c.Faults = []Fault{{At: 20 * time.Second, For: 90 * time.Second, Who: w1}}
		}},
		{name: "a worker is cut off and the cut is mended", works: []string{w1}, change: func(c *Config) {
			for _, name := range slices.Concat(c.Names(), []string{"consumer"}) {
				if name != w1 {
					c.Faults = append(c.Faults, Fault{At: 15 * time.Second, For: 60 * time.Second, Who: w1, From: name})
				}
			}
		}},
		{name: "half of the machines are switched off for a while", away: []string{"verifier-0"}, change: func(c *Config) {
			for _, name := range []string{"worker-0", w1, "verifier-0"} {
				c.Faults = append(c.Faults, Fault{At: 20 * time.Second, For: 120 * time.Second, Who: name})
			}
		}},
		{name: "all machines are switched off for a while", change: func(c *Config) {
			for _, name := range c.Names() { // for less than a verifier has to open a seal
				c.Faults = append(c.Faults, Fault{At: 20 * time.Second, For: 30 * time.Second, Who: name})
			}
		}},
		{name: "all workers are replaced", waits: 2, works: []string{"new-0", "new-1", "new-2", "new-3"},
			out: map[string]string{"worker-0": reason.Left, w1: reason.Left, "worker-2": reason.Left, "worker-3": reason.Left},
			change: func(c *Config) {
				c.Leaves = map[string]time.Duration{}
				for i := range 4 {
					c.Leaves[fmt.Sprintf("worker-%d", i)] = time.Duration(20+5*i) * time.Second
					c.Joins = append(c.Joins, comes(crew.Worker, 18+5*i, fmt.Sprintf("new-%d", i))...)
				}
			}},
	}
}

func TestMachinesComeAndGo(t *testing.T) {
	for _, s := range changes() {
		t.Run(s.name, func(t *testing.T) { s.test(t, churning(t)) })
	}
}

func (s change) test(t *testing.T, c Config) {
	s.change(&c)
	newcomers := &waiting{}
	o := played(t, c, CoinsConserved{}, &PaidOnce{}, HonestNotSlashed{Away: s.away}, &Lineage{Honest: true}, newcomers)
	t.Logf("newcomers waited %v rounds", newcomers.Rounds)
	if o.Phase != progress.Done || o.Rounds != c.Job.Task.Spec.Rounds || !o.Honest {
		t.Errorf("the run ends in phase %d after %d rounds: %s", o.Phase, o.Rounds, o.Why)
	}
	for name, why := range s.out {
		if o.Out[name] != why {
			t.Errorf("%s is out: %q, want %q", name, o.Out[name], why)
		}
	}
	for _, name := range s.works {
		if o.Earned[name] == 0 {
			t.Errorf("%s earned nothing; out: %q", name, o.Out[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(newcomers.Rounds)) {
		if newcomers.Rounds[name] > s.waits && s.waits > 0 {
			t.Errorf("%s waited %d rounds for its first unit", name, newcomers.Rounds[name])
		}
	}
	if s.waits > 0 && len(newcomers.Rounds) != len(c.Joins) {
		t.Errorf("first units: %v of %d newcomers", newcomers.Rounds, len(c.Joins))
	}
}

// waiting notes how long newcomers wait for their first unit.
type waiting struct {
	Rounds map[string]uint32 // from joining to the first unit, by name

	joined map[string]uint32
}

// Block implements Checker.
func (a *waiting) Block(w *Network) error {
	if a.joined == nil {
		a.joined, a.Rounds = map[string]uint32{}, map[string]uint32{}
	}
	for _, e := range w.runEvents() {
		switch e.Kind {
		case event.MemberJoined:
			a.joined[e.Who] = e.Round
		case event.UnitAssigned:
			if _, known := a.Rounds[w.Name(e.Who)]; !known && a.has(e.Who) {
				a.Rounds[w.Name(e.Who)] = e.Round - a.joined[e.Who]
			}
		}
	}
	return nil
}

func (a *waiting) has(id string) bool { _, ok := a.joined[id]; return ok }

// End implements Checker.
func (a *waiting) End(*Network) error { return nil }
