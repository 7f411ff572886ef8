package sim

import (
	"context"
	"testing"
	"time"

	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/scale"
	"github.com/starling-network/starling/sim/workload"
)

// A crowd is as fast as a network whose work, bytes, chain and signatures are those of a real one.
func TestCrowdIsAsFastAsAWorld(t *testing.T) {
	const rounds = 6
	job, err := workload.New(workload.Size{Rounds: rounds, Units: 4, Steps: 1, Segment: 1})
	if err != nil {
		t.Fatal(err)
	}
	link := link.Link{Latency: 50 * time.Millisecond, Up: 12.5e6, Down: 12.5e6}
	w, err := New(Config{
		Seed: 1, Job: job, Workers: 4, Verifiers: 1, Validators: 1, BlockTime: time.Second, Deadline: 200, Link: link,
		Unit: 20 * time.Second, MaxBlocks: 1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Play(); err != nil {
		t.Fatal(err)
	}
	var heights [2]int64
	for i, round := range []uint32{1, rounds} {
		e, err := w.Chain().Training.Lineage(context.Background(), job.ID(), round)
		if err != nil {
			t.Fatal(err)
		}
		heights[i] = e.Height
	}
	real := float64(heights[1]-heights[0]) / (rounds - 1)
	r, err := scale.Model{Seed: 1, Workers: 80, Run: 4, Verifiers: 1, Rounds: rounds, Link: link, Update: 3000,
		Block: time.Second, Unit: 20 * time.Second}.Play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Round.Seconds() / real; got < 0.75 || got > 1.33 { // the slowest of four machines, which are drawn
		t.Errorf("a round takes %v, %v s in a world", r.Round, real)
	}
}
