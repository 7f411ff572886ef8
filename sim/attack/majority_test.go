package attack

import (
	"fmt"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/updates"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/link"
)

// The canary: a party that has more than two thirds of the stake of the members of a run forges its model. It serves
// its updates to no other member, so no verifier can show that they make another checkpoint; its units are those of
// honest work on the forged one, and pass their audits. So seats are drawn from the whole network, and no declaration
// or measurement of a place is in the draw: docs/adr/0166-updates-cross-between-places-once.md.
func TestWhoHasMostOfTheStakeOfARunForgesItsModel(t *testing.T) {
	for _, c := range []struct {
		workers int // of the party, of eight; the two verifiers are honest
		forged  bool
	}{{8, true}, {4, false}} {
		if c.workers < 8 && !*long {
			continue
		}
		acts := map[string]adversary.Attack{}
		var guilty []string
		for i := range c.workers {
			name := fmt.Sprint("worker-", i)
			guilty = append(guilty, name)
			acts[name] = adversary.Together{adversary.ForgesCheckpoint{Round: 2, By: 1}, updates.Hoards{}}
		}
		config := sim.Config{Seed: 1, Job: must(QuarterJob())(t), Workers: 8, Verifiers: 4, Validators: 1,
			MaxBlocks: 20_000, Link: link.Link{Latency: 50 * time.Millisecond, Up: 1e7, Down: 1e7},
			Unit: 2 * time.Second, Acts: acts}.Usual()
		config = config.Seating(2)
		config.Order.Workers = market.Workers{Min: 8, Target: 8, Max: 8}
		seen := &attested{}
		w := must(sim.New(config, check.CoinsConserved{}, check.HonestNotSlashed{Guilty: guilty}, seen))(t)
		if _, err := w.Play(); err != nil {
			t.Fatal(err)
		}
		o := must(w.Outcome())(t)
		if forged := seen.final > 0; forged != c.forged || o.Honest == c.forged {
			t.Errorf("%d of 8 workers: %d forged checkpoints stay; %+v", c.workers, seen.final, o)
		}
		t.Logf("%d of 8 workers: %d forged checkpoints stay; %+v", c.workers, seen.final, o)
	}
}
