package market

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
)

// The bond of every worker of a job is that of the lowest rate at which one may be audited.
func TestBondsFollowTheLowestRate(t *testing.T) {
	plain, listed := order(), order()
	listed.Terms.Attested = terms.Attested{Measurements: []canon.Digest{canon.Sum("image")},
		FactorPPM: audit.LeastFactorPPM}
	if p, l := plain.Value(crew.Worker, 100), listed.Value(crew.Worker, 100); l < 4*p-4 || l > 4*p+4 {
		t.Errorf("a bond of %d, and %d at a quarter of the rate", p, l)
	}
	if p, l := plain.Value(crew.Verifier, 100), listed.Value(crew.Verifier, 100); p != l {
		t.Errorf("a verifier's bond of %d and %d", p, l)
	}
}

// An order that wants attested machines lists what may run in them, and neither a worker nor a drawn verifier with
// another image does.
func TestAttestedMachinesRunWhatTheOrderLists(t *testing.T) {
	o := order()
	o.Conditions.Attested = true
	if err := o.Validate(); !errors.Is(err, ErrOrder) {
		t.Errorf("any attested machine: %v", err)
	}
	o.Terms.Attested = terms.Attested{Measurements: []canon.Digest{canon.Sum("image")}, FactorPPM: audit.Certain}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	o.Terms.Attested.Required = true
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	o.Conditions.Attested = false
	if err := o.Validate(); !errors.Is(err, ErrOrder) {
		t.Errorf("members leave that were admitted as they are: %v", err)
	}
	o.Conditions.Attested = true
	for image, fits := range map[string]bool{"image": true, "another": false} {
		p := registry.Participant{Quote: registry.Quote{Measurement: canon.Sum(image), Until: 1}}
		if o.Checks(p) != fits {
			t.Errorf("a verifier with %s: %t", image, !fits)
		}
		if got := ProfileOf(p, registry.DefaultParams(), "", 0); !got.Attested || got.Measurement != canon.Sum(image) {
			t.Errorf("%+v", got)
		}
	}
	if o.Checks(registry.Participant{Flagged: true}) {
		t.Error("a flag of governance counts")
	}
}
