package work

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
)

// The audit of a tolerant unit is a panel: one verifier, which executes the unit and is bound to what it finds by a
// seal. A later beacon draws whether that is compared with what others find; where the first says that the update is
// outside it always is. So others are drawn who execute the unit, too, and are bound, before anybody shows anything:
// nobody can copy, and two who have executed the unit have found the same. Who differs from the most of a panel is out
// of the run, and not paid.

// SealedReport is what one verifier says of a tolerant unit.
type SealedReport struct {
	Verifier string `cbor:"1,keyasint"`
	// height from which it could be at what it owes, or since which it is bound
	Since    int64         `cbor:"2,keyasint"`
	Deadline int64         `cbor:"3,keyasint"`           // height by which its seal is due, or what is in it
	Seal     canon.Digest  `cbor:"4,keyasint"`           // of its finding; zero until it is bound
	Outside  bool          `cbor:"5,keyasint,omitempty"` // it finds the update outside the tolerance
	Shown    bool          `cbor:"6,keyasint,omitempty"`
	Finding  audit.Finding `cbor:"7,keyasint"` // once it is shown
}

// ReportOf returns the place of a verifier among those who look at a unit.
func (u Unit) ReportOf(verifier string) int {
	return slices.IndexFunc(u.Looks, func(x SealedReport) bool { return x.Verifier == verifier })
}

// Bound reports whether all who look at a unit are bound to what they found.
func (u Unit) Bound() bool {
	return len(u.Looks) > 0 && !slices.ContainsFunc(u.Looks, func(x SealedReport) bool { return x.Seal.IsZero() })
}

// OwesReport reports whether a verifier has still to say what it finds of a tolerant unit.
func (u Unit) OwesReport(verifier string) bool {
	k := u.ReportOf(verifier)
	return k >= 0 && u.Status == Auditing && u.Looks[k].Seal.IsZero()
}

// OwesFigures reports whether a verifier has to show what it is bound to.
func (u Unit) OwesFigures(verifier string) bool {
	k := u.ReportOf(verifier)
	return k >= 0 && u.Status == Sealed && !u.Looks[k].Shown
}

// ProvesReportFalse reports whether a verifier would have reported falsely, and has to challenge an exact attempt: its
// last state is another than the verifier found, so that the deposit over the attempt before is held for
// nothing.
func (u Unit) ProvesReportFalse(verifier string) bool {
	roots := u.Commit.Segments
	return u.Held != nil && u.Status != Assigned && len(roots) > 0 && roots[len(roots)-1] != u.Held.End &&
		slices.Contains(u.Held.Verifiers, verifier)
}

// Held is a deposit that waits for the exact execution of its unit: all who looked, of different owners, found the
// same, and that it is outside.
type Held struct {
	Worker    string       `cbor:"1,keyasint"`
	End       canon.Digest `cbor:"2,keyasint"` // of the unit, as they found it
	Verifiers []string     `cbor:"3,keyasint"`
}
