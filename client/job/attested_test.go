package job

import (
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/attestation"
)

// Measurements of attested machines become the terms of an order, and what could not be kept is refused.
func TestAttestedMachines(t *testing.T) {
	const at = "strategy.verification.attested."
	image := attestation.Measurement{Technology: attestation.TDX, Value: [48]byte{1, 2}}
	listed := at + "measurements=[" + image.String() + "]"
	if a := parse(t, minimal).Strategy.Verification.Checks().Attested; a.FactorPPM != 0 || a.Measurements != nil {
		t.Errorf("without a list: %+v", a)
	}
	a := parse(t, minimal, listed).Strategy.Verification.Checks().Attested
	if a.FactorPPM != 500_000 || len(a.Measurements) != 1 || a.Measurements[0] != image.Digest() {
		t.Errorf("%+v", a)
	}
	if a = parse(t, minimal, listed, at+"factor=0.25", "resources.attested=true").Strategy.Verification.Checks().
		Attested; a.FactorPPM != 250_000 {
		t.Errorf("%+v", a)
	}
	for name, set := range map[string][]string{
		"no list":           {"resources.attested=true"},
		"a small factor":    {listed, at + "factor=0.2"},
		"a large factor":    {listed, at + "factor=1.1"},
		"no measurement":    {at + "measurements=[tdx]"},
		"twice":             {at + "measurements=[" + image.String() + ", " + image.String() + "]"},
		"too many":          {at + "measurements=[" + many(17) + "]"},
		"tolerant numerics": {listed, "training.numerics=tolerant"},
	} {
		if _, err := Parse([]byte(minimal), "tiny.yaml", set...); err == nil ||
			!strings.Contains(err.Error(), "attested") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// many are different measurements.
func many(n int) string {
	var all []string
	for i := range n {
		all = append(all, attestation.Measurement{Technology: attestation.SNP, Value: [48]byte{byte(i)}}.String())
	}
	return strings.Join(all, ", ")
}
