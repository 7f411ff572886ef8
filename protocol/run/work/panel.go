package work

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
)

// The audit of a tolerant unit begins with one verifier, which executes the unit and is bound to its finding by a
// seal. A later beacon draws whether other verifiers execute the unit, too; if the first reports that the update is
// outside, they always do. All are bound before any shows its finding, so none can copy, and two that have executed
// the unit have found the same. A verifier that differs from the majority of the panel leaves the run unpaid.

// SealedReport is the report of one verifier about a tolerant unit.
type SealedReport struct {
	Verifier string `cbor:"1,keyasint"`
	// height from which it could do its current duty, or since which it is bound
	Since    int64         `cbor:"2,keyasint"`
	Deadline int64         `cbor:"3,keyasint"`           // height by which its seal, or its finding, is due
	Seal     canon.Digest  `cbor:"4,keyasint"`           // of its finding; zero until it is bound
	Outside  bool          `cbor:"5,keyasint,omitempty"` // it finds the update outside the tolerance
	Shown    bool          `cbor:"6,keyasint,omitempty"`
	Finding  audit.Finding `cbor:"7,keyasint"` // once it is shown
}

// ReportOf returns the index of a verifier's report about a unit, or -1.
func (u Unit) ReportOf(verifier string) int {
	return slices.IndexFunc(u.Looks, func(x SealedReport) bool { return x.Verifier == verifier })
}

// Bound reports whether all verifiers of a unit have sealed their findings.
func (u Unit) Bound() bool {
	return len(u.Looks) > 0 && !slices.ContainsFunc(u.Looks, func(x SealedReport) bool { return x.Seal.IsZero() })
}

// OwesReport reports whether a verifier owes the seal of its finding about a tolerant unit.
func (u Unit) OwesReport(verifier string) bool {
	k := u.ReportOf(verifier)
	return k >= 0 && u.Status == Auditing && u.Looks[k].Seal.IsZero()
}

// OwesFigures reports whether a verifier owes the finding that it has sealed.
func (u Unit) OwesFigures(verifier string) bool {
	k := u.ReportOf(verifier)
	return k >= 0 && u.Status == Sealed && !u.Looks[k].Shown
}

// ProvesReportFalse reports whether the exact attempt at a unit contradicts the report of a verifier, which then has
// to challenge the attempt: its last state is another than the verifier found, so that the deposit over the attempt
// before is held for nothing.
func (u Unit) ProvesReportFalse(verifier string) bool {
	roots := u.Commit.Segments
	return u.Held != nil && u.Status != Assigned && len(roots) > 0 && roots[len(roots)-1] != u.Held.End &&
		slices.Contains(u.Held.Verifiers, verifier)
}

// Held is a deposit that waits for the exact execution of its unit: all verifiers of a panel, of different owners,
// found the same, and that the update is outside.
type Held struct {
	Worker    string       `cbor:"1,keyasint"`
	End       canon.Digest `cbor:"2,keyasint"` // of the unit, as they found it
	Verifiers []string     `cbor:"3,keyasint"`
}
