package sim

import (
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/sim/check"
)

// cutFromConsumer cuts members off from the consumer, who alone has the blobs of a job.
func cutFromConsumer(names ...string) (faults []Fault) {
	for _, name := range names {
		faults = append(faults, Fault{Who: name, From: "consumer", For: 1000 * time.Hour})
	}
	return faults
}

// A job whose blobs no party serves ends soon, and costs its members nothing.
func TestJobWhoseBlobsNobodyServes(t *testing.T) {
	c := small(t)
	c.Faults = cutFromConsumer(c.Names()...)
	o := played(t, c, check.CoinsConserved{}, check.HonestNotSlashed{})
	if o.Phase != progress.Halted || o.Why != reason.Unopened || len(o.Slashed) > 0 {
		t.Errorf("the run ends in phase %d: %s; slashed: %v", o.Phase, o.Why, o.Slashed)
	}
	for name, why := range o.Out {
		if why != reason.Unopened {
			t.Errorf("%s is out: %s", name, why)
		}
	}
}

// A member that alone cannot have the blobs leaves, and the others do the job.
func TestMemberThatCannotOpenTheJob(t *testing.T) {
	c := small(t)
	c.Faults = cutFromConsumer(w1)
	o := played(t, c, check.CoinsConserved{}, check.HonestNotSlashed{})
	if o.Phase != progress.Done || !o.Honest || o.Out[w1] != reason.Unopened || len(o.Out) != 1 || len(o.Slashed) > 0 {
		t.Errorf("the run ends in phase %d: %s; out %v, slashed %v", o.Phase, o.Why, o.Out, o.Slashed)
	}
}
