package node

import (
	"reflect"
	"testing"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/sim"
)

// What a job orders from a network, if nobody says otherwise, is on the terms that simulated networks are played on; and it has two
// verifiers, of whom an embedded network, where all parties are one owner's, has one unless the file asks for more.
func TestSimulationsPlayTheTermsOfANetwork(t *testing.T) {
	j := smallJob(t)
	b, err := NewBlueprint(j)
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.order()
	if err != nil {
		t.Fatal(err)
	}
	o = b.conditioned(o, 1)
	played := sim.Config{
		Job: sim.Of(b.JobID(), &train.Task{Spec: b.Spec, Step: b.Step}, b.Genesis), AuditPPM: auditPPM(j.Strategy.Verification),
	}.Terms()
	if !reflect.DeepEqual(o.Terms, played) {
		t.Errorf("ordered is\n%+v\nand played\n%+v", o.Terms, played)
	}
	here, err := b.embeddedOrder()
	if err != nil || o.Verifiers != 2 || here.Verifiers != 1 {
		t.Errorf("%d verifiers on a network, %d embedded: %v", o.Verifiers, here.Verifiers, err)
	}
}
