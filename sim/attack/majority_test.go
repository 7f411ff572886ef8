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

// A party that has all workers of a run serves no update to any other member, and signs a checkpoint of its own. The
// verifiers execute the rounds again, in an order that the party does not know, and refute the checkpoint in most runs;
// all that signed it lose their stakes. A party that has half of the workers has no majority.
func TestVerifiersExecuteRoundsThatTheMajorityOfARunKeepsBack(t *testing.T) {
	t.Parallel()
	forged, seeds := 0, uint64(1)
	if *long {
		seeds = 3
		if o, stay := keptBack(t, 0, 4); stay > 0 || !o.Honest {
			t.Errorf("4 of 8 workers: %d forged checkpoints stay; %+v", stay, o)
		}
	}
	for seed := range seeds {
		o, stay := keptBack(t, seed, 8)
		t.Logf("seed %d: %d forged checkpoints stay; %+v", seed, stay, o)
		if stay > 0 {
			forged++
		} else if !o.Honest || len(o.Slashed) < 6 {
			t.Errorf("seed %d: %+v", seed, o)
		}
	}
	if forged > 0 {
		t.Errorf("forged checkpoints stay in %d of %d runs", forged, seeds)
	}
}

// keptBack plays a run of eight workers of which some serve their updates to no other member and sign a forged
// checkpoint. The verifiers are honest. It returns how many forged checkpoints stay.
func keptBack(t *testing.T, seed uint64, workers int) (sim.Outcome, int) {
	acts := map[string]adversary.Attack{}
	var guilty []string
	for i := range workers {
		name := fmt.Sprint("worker-", i)
		guilty = append(guilty, name)
		acts[name] = adversary.Together{adversary.ForgesCheckpoint{Round: 2, By: 1}, updates.Hoards{}}
	}
	config := sim.Config{Seed: seed, Job: must(QuarterJob())(t), Workers: 8, Verifiers: 4, Validators: 1,
		MaxBlocks: 20_000, Link: link.Link{Latency: 50 * time.Millisecond, Up: 1e7, Down: 1e7},
		Unit: 2 * time.Second, Acts: acts}.Usual()
	config = config.Seating(2)
	config.Order.Workers = market.Workers{Min: 8, Target: 8, Max: 8}
	seen := &attested{}
	w := must(sim.New(config, check.CoinsConserved{}, check.HonestNotSlashed{Guilty: guilty}, seen))(t)
	if _, err := w.Play(); err != nil {
		t.Fatal(err)
	}
	return must(w.Outcome())(t), seen.final
}
