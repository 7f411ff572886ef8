package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/workload"
)

// small is an honest network with a job of three rounds. Jobs are shared: what one run computed the next need not.
func small(t testing.TB) Config {
	t.Helper()
	if shared == nil {
		var err error
		if shared, err = workload.New(workload.Size{Rounds: 3, Units: 4, Steps: 6, Segment: 3}); err != nil {
			t.Fatal(err)
		}
	}
	return Config{
		Seed: 1, Job: shared, Workers: 4, Verifiers: 2, Validators: 3, AuditPPM: 1_000_000, BlockTime: time.Second,
		Deadline: 20,
		Link:     link.Link{Latency: 50 * time.Millisecond, Up: 1e6, Down: 1e6, Loss: 0.01},
		Unit:     2 * time.Second, MaxBlocks: 400,
	}
}

var shared *workload.Job

// played is how a network ends in which checkers find nothing.
func played(t *testing.T, c Config, checks ...check.Checker) Outcome {
	t.Helper()
	if testing.Verbose() {
		c.Log = func(line string) { t.Log(line) }
	}
	w := must(New(c, checks...))(t)
	if _, err := w.Play(); err != nil {
		t.Fatalf("seed %d: %v", c.Seed, err)
	}
	o := must(w.Outcome())(t)
	t.Logf("%+v", o)
	return o
}

// sized is small with another job, and one validator.
func sized(t testing.TB, z workload.Size) Config {
	t.Helper()
	c := small(t)
	key := fmt.Sprint(z)
	if sharedSized[key] == nil {
		j, err := workload.New(z)
		if err != nil {
			t.Fatal(err)
		}
		sharedSized[key] = j
	}
	c.Job, c.Validators = sharedSized[key], 1
	return c
}

var sharedSized = map[string]*workload.Job{}

// Jobs of five rounds, of which the first three and the last two carry a state.
var (
	remembering = workload.Size{Rounds: 5, Units: 4, Steps: 6, Segment: 3, Carry: 3, Moments: true} // and their moments
)
