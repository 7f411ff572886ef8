package people

import (
	"context"
	"fmt"
	"time"

	"github.com/starling-network/starling/node/releases"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/workload"
)

// Upgrade is what became of a run whose members all got another program while they trained, each at its turn in the
// rollout of a release.
type Upgrade struct {
	Nodes   int     `json:"nodes"`
	Down    float64 `json:"down_seconds"`    // that a node is away
	Rollout float64 `json:"rollout_seconds"` // within which all nodes switch
	Rounds  uint32  `json:"rounds"`          // of the run, of which some come before and after
	Missed  int     `json:"missed"`          // deadlines, of units, audits and votes, and members that had to leave
	Slashed uint64  `json:"slashed_uzen"`
	Whole   bool    `json:"whole"` // the run ended, with the checkpoint of a run alone
}

// The network that changes its programs.
const (
	upgraded     = 20 // nodes: workers, and the verifiers below
	verifying    = 3
	upgradeBlock = 5 * time.Second
	unitTime     = 2 * time.Minute // up to as much again is drawn for every machine
	// that a node needs to be back: to verify a release and to start takes a tenth of it on a machine of today
	downTime = 30 * time.Second
)

// upgrade plays the network. rollout is the time within which its nodes switch, and some rounds have to come after it.
func upgrade(ctx context.Context, seed uint64, rollout time.Duration, rounds uint32) (Upgrade, error) {
	u := Upgrade{Nodes: upgraded, Down: downTime.Seconds(), Rollout: rollout.Seconds(), Rounds: rounds}
	job, err := workload.New(workload.Size{Rounds: rounds, Units: upgraded - verifying, Steps: 6, Segment: 3})
	if err != nil {
		return u, err
	}
	c := sim.Config{Seed: seed, Job: job, Workers: upgraded - verifying, Verifiers: verifying, Validators: 1,
		Link: link.Profiles["home"], Unit: unitTime, MaxBlocks: 20_000}.Usual()
	c.BlockTime = upgradeBlock
	// a second round has begun by then, and the last one has not
	n := releases.Notes{Version: fmt.Sprintf("v1.%d.0", seed), From: time.Unix(0, 0).Add(10 * time.Minute),
		Rollout: uint64(rollout / time.Second)}
	for _, name := range c.Names() {
		c.Faults = append(c.Faults, sim.Fault{Who: name, At: n.Turn(name).Sub(time.Unix(0, 0)), For: downTime})
	}
	late := &lateness{}
	w, err := sim.New(c, stopper{ctx}, check.CoinsConserved{}, late)
	if err != nil {
		return u, err
	}
	if _, err := w.Play(); err != nil {
		return u, err
	}
	o, err := w.Outcome()
	if err != nil {
		return u, err
	}
	for _, amount := range o.Slashed {
		u.Slashed += amount
	}
	u.Missed = len(late.seen) + len(o.Out)
	u.Whole = o.Phase == progress.Done && o.Honest && o.Rounds == rounds
	return u, nil
}

// lateness counts the deadlines that members of a run miss.
type lateness struct {
	seen map[string]bool // each of them once
}

// Block implements check.Checker.
func (l *lateness) Block(v check.World) error {
	s, err := v.State()
	if err != nil {
		return nil // the run has not begun
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	for _, m := range s.Members {
		if m.Missed > 0 || m.Silent > 0 {
			l.seen[fmt.Sprintf("%s: %d of round %d, votes %d", m.ID, m.Missed, s.Round, m.Silent)] = true
		}
	}
	for _, u := range s.Units {
		if u.Attempt > 0 {
			l.seen[fmt.Sprintf("round %d, unit %d", s.Round, u.Index)] = true
		}
	}
	return nil
}

// End implements check.Checker.
func (*lateness) End(check.World) error { return nil }
