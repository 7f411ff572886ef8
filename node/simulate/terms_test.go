package simulate

import (
	"reflect"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/attack"
	"github.com/starling-network/starling/sim/workload"
)

// A job's default order on a network has the terms on which simulated networks are played, and two verifiers. An
// embedded network, where all parties have one owner, has one verifier unless the file asks for more.
func TestSimulationsPlayTheTermsOfANetwork(t *testing.T) {
	j, err := job.Load(jobtest.Small(t).Path, "strategy.verification=null")
	if err != nil {
		t.Fatal(err)
	}
	b, err := prepare.New(j)
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.Order()
	if err != nil {
		t.Fatal(err)
	}
	o = demand.Conditioned(b.Job, o, 1)
	played := sim.Config{
		Job:      workload.Of(b.JobID(), &train.Task{Spec: b.Spec, Step: b.Step}, b.Genesis),
		AuditPPM: j.Strategy.Verification.AuditPPM(),
	}.Terms()
	if !reflect.DeepEqual(o.Terms, played) {
		t.Errorf("ordered is\n%+v\nand played\n%+v", o.Terms, played)
	}
	for seed := range uint64(6) {
		c, err := new(attack.Mixer).Draw(seed)
		if err != nil {
			t.Fatal(err)
		}
		got, want := c.Order.Terms, o.Terms
		if got.AuditPPM != want.AuditPPM || got.PartialAudits != want.PartialAudits || got.Deadlines != want.Deadlines ||
			c.Order.Verifiers != o.Verifiers ||
			got.Slices == 0 && got.Screen != want.Screen {
			t.Errorf("mix %d has %d verifiers on the terms\n%+v\nordered are %d on\n%+v", seed, c.Order.Verifiers, got,
				o.Verifiers, want)
		}
	}
	here, err := b.LocalOrder()
	if err != nil || o.Verifiers != 2 || here.Verifiers != 1 {
		t.Errorf("%d verifiers on a network, %d embedded: %v", o.Verifiers, here.Verifiers, err)
	}
}
