package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/verifiers"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/workload"
)

// churning is a job of many short rounds. One validator keeps the chain: the subject is the members of a run.
func churning(t testing.TB) Config {
	t.Helper()
	c := small(t)
	if lasting == nil {
		var err error
		if lasting, err = workload.New(workload.Size{Rounds: 8, Units: 4, Steps: 6, Segment: 3}); err != nil {
			t.Fatal(err)
		}
	}
	c.Job, c.Validators, c.Deadline, c.MaxBlocks = lasting, 1, 12, 1500
	return c
}

var lasting *workload.Job

// A change is one way in which machines come and go during a run. After each, the run ends with the model of the
// undisturbed run, nothing is paid twice and no party is slashed.
type change struct {
	name   string
	change func(c *Config)
	works  []string // have earned something
	out    map[string]string
	away   []string // may lose a little stake, for what they did not open in time
	waits  uint32   // rounds from joining to the first unit, at most; 0: no party need get one
	long   bool     // played with -long only
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
		{name: "a worker joins before anything is committed", long: true,
			waits: 3, works: []string{"new"}, change: func(c *Config) {
				c.Most, c.Joins = 5, comes(crew.Worker, 5, "new")
			}},
		{name: "a worker joins only a free place", long: true,
			change: func(c *Config) { c.Joins = comes(crew.Worker, 25, "new") }},
		{name: "a worker leaves", long: true,
			out: map[string]string{w1: reason.Left}, works: []string{w1}, change: func(c *Config) {
				c.Leaves = map[string]time.Duration{w1: 40 * time.Second}
			}},
		{name: "a worker leaves in the middle of its first unit", long: true, out: map[string]string{w1: reason.Left},
			works: []string{w1}, change: func(c *Config) {
				c.Unit = 8 * time.Second
				c.Leaves = map[string]time.Duration{w1: 8 * time.Second}
			}},
		{name: "a verifier leaves", long: true, out: map[string]string{v1: reason.Left}, change: func(c *Config) {
			c.Leaves = map[string]time.Duration{v1: 40 * time.Second}
		}},
		{name: "a verifier takes the place of another", long: true, out: map[string]string{v1: reason.Left},
			works: []string{"new"}, change: func(c *Config) {
				c.Leaves = map[string]time.Duration{v1: 30 * time.Second}
				c.Joins = comes(crew.Verifier, 25, "new")
			}},
		{name: "a worker crashes and is back", long: true, works: []string{w1}, change: func(c *Config) {
			c.Faults = []Fault{{At: 20 * time.Second, For: 90 * time.Second, Who: w1}}
		}},
		{name: "a worker is cut off and the cut is mended", long: true, works: []string{w1}, change: func(c *Config) {
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
		{name: "all machines are switched off for a while", long: true, change: func(c *Config) {
			for _, name := range c.Names() { // for less than a verifier has to open a seal
				c.Faults = append(c.Faults, Fault{At: 20 * time.Second, For: 30 * time.Second, Who: name})
			}
		}},
		{name: "a worker is paused in the middle of a unit, and resumed in time", long: true,
			works: []string{w1}, change: func(c *Config) {
				c.Unit, c.Pauses = 8*time.Second, []Pause{{At: 6 * time.Second, For: 4 * time.Second, Who: w1}}
			}},
		{name: "a worker stays paused, and works again", long: true, out: map[string]string{w1: ""}, works: []string{w1},
			change: func(c *Config) {
				c.Pauses = []Pause{{At: 20 * time.Second, For: 30 * time.Second, Who: w1}}
			}},
		{name: "a worker stays paused to the end", long: true, out: map[string]string{w1: reason.Left},
			change: func(c *Config) {
				c.Pauses = []Pause{{At: 20 * time.Second, For: time.Hour, Who: w1, Known: true}}
			}},
		{name: "a verifier stays paused, and works again", long: true, change: func(c *Config) {
			c.Pauses = []Pause{{At: 20 * time.Second, For: 40 * time.Second, Who: v1}}
		}},
		{name: "all machines are paused for a while", long: true, change: func(c *Config) {
			for _, name := range c.Names() {
				c.Pauses = append(c.Pauses, Pause{At: 20 * time.Second, For: 30 * time.Second, Who: name})
			}
		}},
		{name: "machines are paused now and then", long: true, change: func(c *Config) {
			for k, name := range c.Names() {
				for at := 10 + k; at < 120; at += 13 + k {
					c.Pauses = append(c.Pauses, Pause{At: time.Duration(at) * time.Second, For: 5 * time.Second, Who: name})
				}
			}
		}},
		{name: "all workers are replaced", long: true, waits: 2,
			works: []string{"new-0", "new-1", "new-2", "new-3"},
			out:   map[string]string{"worker-0": reason.Left, w1: reason.Left, "worker-2": reason.Left, "worker-3": reason.Left},
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
		if s.long && !*long {
			continue
		}
		t.Run(s.name, func(t *testing.T) { s.test(t, churning(t)) })
	}
}

func (s change) test(t *testing.T, c Config) {
	s.change(&c)
	newcomers := &waiting{}
	o := played(t, c, check.CoinsConserved{}, &check.PaidOnce{}, check.HonestNotSlashed{Away: s.away},
		&check.Lineage{Honest: true}, newcomers)
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
func (a *waiting) Block(w check.World) error {
	if a.joined == nil {
		a.joined, a.Rounds = map[string]uint32{}, map[string]uint32{}
	}
	for _, e := range check.RunEvents(w) {
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
func (a *waiting) End(check.World) error { return nil }

// Workers are challenged falsely over their units, and paused meanwhile: they answer every move during the pause, and
// the accuser is slashed.
func TestPausedPartiesAnswer(t *testing.T) {
	c := churning(t)
	c.Acts = map[string]adversary.Attack{v1: verifiers.ChallengesFalsely{Segment: 1, Manner: verifiers.ToTheLeaf}}
	for at := 8; at < 300; at += 16 {
		for _, name := range c.Names()[:c.Workers] {
			c.Pauses = append(c.Pauses, Pause{At: time.Duration(at) * time.Second, For: 8 * time.Second, Who: name})
		}
	}
	paused, moves := map[string]bool{}, 0
	c.Log = func(line string) {
		switch f := strings.Fields(line); {
		case f[1] == "pause", f[1] == "resume":
			paused[f[2]] = f[1] == "pause"
		case f[1] == "done" && paused[f[2]] && f[3] == "move":
			moves++
		}
	}
	guilty := []string{v1}
	w, err := New(c, check.CoinsConserved{}, &check.PaidOnce{Guilty: guilty}, &check.HonestNotSlashed{Guilty: guilty},
		&check.Lineage{Honest: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Play(); err != nil {
		t.Fatal(err)
	}
	o, err := w.Outcome()
	if err != nil || o.Phase != progress.Done || !o.Honest || o.Slashed[v1] == 0 || moves == 0 {
		t.Errorf("%d moves in pauses; %+v, %v", moves, o, err)
	}
}
