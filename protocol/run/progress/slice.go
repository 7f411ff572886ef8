package progress

import (
	"slices"

	"github.com/starling-network/starling/canon"
)

// Slice is a part of the next checkpoint that a few members compute for all, in a run whose terms want slices. The
// result is the CID of a blob, a function of the commitments of the round. Each reducer is bound to its result by a
// seal and shows it once all are bound, so none can copy from another. If the results differ, every member computes
// the slice, and a quorum decides.
type Slice struct {
	Status   SliceStatus `cbor:"1,keyasint"`
	Panel    uint32      `cbor:"2,keyasint"` // how many are to compute it
	Audited  bool        `cbor:"3,keyasint"` // it is decided whether one more than two compute it
	Sealed   int64       `cbor:"4,keyasint"` // height of the latest seal
	Reducers []Reducer   `cbor:"5,keyasint,omitempty"`
	CID      string      `cbor:"6,keyasint"` // Agreed: of the slice
}

// SliceStatus is how far a slice has come.
type SliceStatus uint8

// Statuses of slices are part of the format.
const (
	Reducing  SliceStatus = 1 // reducers are drawn, and owe their seals
	Showing   SliceStatus = 2 // all are bound, and owe what their seals bind them to
	Contested SliceStatus = 3 // they differ: every active member is a reducer, and owes what it finds
	Agreed    SliceStatus = 4
)

// Reducer is a member that computes a slice.
type Reducer struct {
	Member   string       `cbor:"1,keyasint"`
	Since    int64        `cbor:"2,keyasint"` // height from which it could compute the slice
	Deadline int64        `cbor:"3,keyasint"` // height by which the seal, or the CID, is due
	Seal     canon.Digest `cbor:"4,keyasint"` // SliceSeal; zero until it is bound
	CID      string       `cbor:"5,keyasint"` // CID of its result; empty until it is shown
	Late     bool         `cbor:"6,keyasint"` // it missed a deadline, and was replaced
}

// SliceSeal binds a member to its result for a slice of the current round, without showing it.
func (p Progress) SliceSeal(member string, slice uint32, cid string) canon.Digest {
	return canon.Hash("starling/slice/1", []any{p.Terms.Job, p.Round, p.Closed, slice, member, cid})
}

// SliceDuty is a message that a member owes about a slice.
type SliceDuty uint8

// The duties.
const (
	OwesNothing SliceDuty = iota
	OwesSeal
	OwesCID
)

// Owes returns the message that a member owes now about a slice of the current round.
func (r Reduction) Owes(member string, slice int) SliceDuty {
	x := r.Slices[slice]
	i := x.ReducerOf(member)
	switch {
	case i < 0 || x.Reducers[i].Late || x.Status == Agreed || x.Reducers[i].CID != "":
		return OwesNothing
	case x.Status == Reducing && x.Reducers[i].Seal.IsZero():
		return OwesSeal
	case x.Status == Reducing:
		return OwesNothing
	}
	return OwesCID
}

// Results lists the CIDs of the slices of the current round, in order, once all are agreed.
func (p Progress) Results() []string {
	if p.Phase != Attest {
		return nil
	}
	cids := make([]string, len(p.Slices))
	for i, x := range p.Slices {
		cids[i] = x.CID
	}
	return cids
}

func (x Slice) ReducerOf(member string) int {
	return slices.IndexFunc(x.Reducers, func(r Reducer) bool { return r.Member == member })
}
