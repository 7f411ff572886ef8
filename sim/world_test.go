package sim

import (
	"testing"
	"time"
)

// small is an honest network with a job of three rounds. Jobs are shared: what one run computed the next need not.
func small(t testing.TB) Config {
	t.Helper()
	if shared == nil {
		var err error
		if shared, err = NewJob(Size{Rounds: 3, Units: 4, Steps: 6, Segment: 3}); err != nil {
			t.Fatal(err)
		}
	}
	return Config{
		Seed: 1, Job: shared, Workers: 4, Verifiers: 2, Validators: 3, AuditPPM: 1_000_000, BlockTime: time.Second, Deadline: 20,
		Link: Link{Latency: 50 * time.Millisecond, Up: 1e6, Down: 1e6, Loss: 0.01}, Unit: 2 * time.Second, MaxBlocks: 400,
	}
}

var shared *Job

// carrying is small with a job whose units hand on what their updates leave out, through three rounds in a row.
func carrying(t testing.TB) Config {
	t.Helper()
	c := small(t)
	if sharedCarrying == nil {
		var err error
		if sharedCarrying, err = NewJob(Size{Rounds: 5, Units: 4, Steps: 6, Segment: 3, Carry: 3}); err != nil {
			t.Fatal(err)
		}
	}
	c.Job = sharedCarrying
	return c
}

var sharedCarrying *Job

// replicating is small with a job whose units begin from what was handed on to them.
func replicating(t testing.TB) Config {
	t.Helper()
	c := small(t)
	if sharedReplicating == nil {
		var err error
		if sharedReplicating, err = NewJob(Size{Rounds: 5, Units: 4, Steps: 6, Segment: 3, Carry: 3, Replicas: true}); err != nil {
			t.Fatal(err)
		}
	}
	c.Job = sharedReplicating
	return c
}

var sharedReplicating *Job

// overlapping is small with a job of five rounds, of which the first three and the last two overlap.
func overlapping(t testing.TB) Config {
	t.Helper()
	c := small(t)
	if sharedOverlapping == nil {
		var err error
		if sharedOverlapping, err = NewJob(Size{Rounds: 5, Units: 4, Steps: 6, Segment: 3, Carry: 3, Overlap: true}); err != nil {
			t.Fatal(err)
		}
	}
	c.Job = sharedOverlapping
	return c
}

var sharedOverlapping *Job
