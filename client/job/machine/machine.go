// Package machine has the keys of job files about attested machines, and the terms of orders that follow from them. It
// does not check them: client/job/check does.
package machine

import (
	"github.com/starling-network/starling/protocol/attestation"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Attested is what a job makes of workers whose machines are attested by a quote.
type Attested struct {
	// of software that may run in the machines, such as sev-snp:HEX or tdx:HEX; none: no machine counts as attested
	Measurements []string `job:"measurements"`
	Factor       float64  `job:"factor" in:"[0.25,1]"` // of the probability that their units are audited
}

// Terms are those of an order. The texts of measurements are checked with the job file.
func (a Attested) Terms() (t terms.Attested) {
	for _, text := range a.Measurements {
		if m, err := attestation.ParseMeasurement(text); err == nil {
			t.Measurements = append(t.Measurements, m.Digest())
		}
	}
	if len(t.Measurements) > 0 {
		t.FactorPPM = uint32(a.Factor*1e6 + 0.5)
	}
	return t
}
