package terms

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
)

// MaxMeasurements is the most measurements that a job lists.
const MaxMeasurements = 16

// Attested is what a job makes of workers whose machines are attested.
type Attested struct {
	// of software that may run in the machines (attestation.Measurement.Digest); none: no machine counts as attested
	Measurements []canon.Digest `cbor:"1,keyasint,omitempty"`
	FactorPPM    uint32         `cbor:"2,keyasint,omitempty"` // of the floor of their audit rate, parts per million
	// Whether a member leaves the run when no attestation with a listed measurement holds for its machine. If it is false,
	// as in orders of earlier versions, a member needs one for its admission alone.
	Required bool `cbor:"3,keyasint,omitempty"`
}

func (a Attested) valid() bool {
	if len(a.Measurements) == 0 {
		return a.FactorPPM == 0 && !a.Required
	}
	return len(a.Measurements) <= MaxMeasurements && !a.Lists(canon.Digest{}) && a.FactorPPM >= audit.LeastFactorPPM &&
		a.FactorPPM <= audit.Certain
}

// Lists reports whether the job lists a measurement.
func (a Attested) Lists(m canon.Digest) bool { return slices.Contains(a.Measurements, m) }

// Least is the least rate at which the units of any worker may be audited, in parts per million: Floor, or less for
// workers on attested machines.
func (t Terms) Least() uint32 {
	if len(t.Attested.Measurements) == 0 {
		return t.Floor()
	}
	return audit.Lowered(t.Floor(), t.Attested.FactorPPM)
}
