package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Slice is a part of the next checkpoint that a few members compute for all, in a run whose terms want slices. What
// they computed is the CID of a blob, a function of the commitments of the round. Each is first bound to it by a seal,
// so that nobody can say what another has found, and shows it when all are bound. If they do not agree, every member
// computes the slice, and a quorum decides.
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
	Since    int64        `cbor:"2,keyasint"` // height from which it could be at it
	Deadline int64        `cbor:"3,keyasint"` // height by which the seal, or the CID, is due
	Seal     canon.Digest `cbor:"4,keyasint"` // SliceSeal; zero until it is bound
	CID      string       `cbor:"5,keyasint"` // of what it computed; empty until it is shown
	Late     bool         `cbor:"6,keyasint"` // it missed a deadline, and was replaced
}

// SliceSeal binds a member to what it computed for a slice of the current round, without showing it.
func (p Progress) SliceSeal(member string, slice uint32, cid string) canon.Digest {
	return canon.Hash("starling/slice/1", []any{p.Terms.Job, p.Round, p.Closed, slice, member, cid})
}

// SliceDuty is what a member has to say about a slice.
type SliceDuty uint8

// The duties.
const (
	OwesNothing SliceDuty = iota
	OwesSeal
	OwesCID
)

// Owes returns what a member has to say now about a slice of the current round.
func (r Reduction) Owes(member string, slice int) SliceDuty {
	x := r.Slices[slice]
	i := x.reducer(member)
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

func (x Slice) reducer(member string) int {
	return slices.IndexFunc(x.Reducers, func(r Reducer) bool { return r.Member == member })
}

// ShowSlice is a member's word on what a slice is. A reducer shows what its seal binds it to; when a slice is
// contested, every member what it finds; and any member may contest what was agreed, until the round is attested, by
// showing something else. closed is the height of the last commitment of the round: it says of which updates.
func (s State) ShowSlice(env Env, from string, round uint32, closed int64, slice uint32,
	cid string) (State, []Event, error) {
	x, err := sliceOf(s, from, round, closed, slice)
	if err != nil {
		return s, nil, err
	}
	if !terms.ValidCID(cid) {
		return s, nil, fmt.Errorf("%w: CID of %d bytes, wanted 1 to %d", ErrBadSlice, len(cid), MaxCID)
	}
	i := x.reducer(from)
	switch {
	case x.Status == Reducing:
		return s, nil, fmt.Errorf("%w: not every reducer of slice %d is bound", ErrWrongPhase, slice)
	case x.Status == Agreed && x.CID == cid, i >= 0 && x.Reducers[i].CID != "" && x.Status != Agreed:
		return s, nil, fmt.Errorf("%w: slice %d", ErrDuplicate, slice)
	case x.Status == Showing && (i < 0 || x.Reducers[i].Late):
		return s, nil, fmt.Errorf("%w: slice %d is reduced by others", ErrNotYours, slice)
	case x.Status == Showing && x.Reducers[i].Seal != s.SliceSeal(from, slice, cid):
		return s, nil, fmt.Errorf("%w: this is not what was sealed for slice %d", ErrBadSlice, slice)
	case x.Status == Contested && i < 0:
		return s, nil, fmt.Errorf("%w: %s has just joined, and is asked for slice %d in the next block", ErrNotYours, from,
			slice)
	}
	d := s.edit(env)
	y := &d.Slices[slice]
	if x.Status == Agreed {
		d.contest(slice)
		i = y.reducer(from)
	}
	y.Reducers[i].CID, y.Reducers[i].Late = cid, false
	d.compare(slice)
	d.combined()
	after, events := d.finish()
	return after, events, nil
}

// SealSlice binds a reducer to what it computed: seal is a SliceSeal.
func (s State) SealSlice(env Env, from string, round uint32, closed int64, slice uint32,
	seal canon.Digest) (State, []Event, error) {
	x, err := sliceOf(s, from, round, closed, slice)
	if err != nil {
		return s, nil, err
	}
	i := x.reducer(from)
	switch {
	case x.Status != Reducing:
		return s, nil, fmt.Errorf("%w: all reducers of slice %d are bound", ErrWrongPhase, slice)
	case i < 0 || x.Reducers[i].Late:
		return s, nil, fmt.Errorf("%w: slice %d is reduced by others", ErrNotYours, slice)
	case !x.Reducers[i].Seal.IsZero():
		return s, nil, fmt.Errorf("%w: slice %d is sealed", ErrDuplicate, slice)
	case seal.IsZero():
		return s, nil, fmt.Errorf("%w: no seal", ErrBadSlice)
	}
	d := s.edit(env)
	d.ReduceBlocks = schedule.Remember(d.ReduceBlocks, d.waited(x.Reducers[i].Since))
	d.change(from, func(m *Member) { m.Silent = 0 })
	d.Slices[slice].Reducers[i].Seal, d.Slices[slice].Sealed = seal, env.Height
	for k := range d.Slices { // the reducer turns to its next slice
		y := &d.Slices[k]
		if j := y.reducer(from); j >= 0 && y.Status == Reducing && !y.Reducers[j].Late && y.Reducers[j].Seal.IsZero() {
			y.Reducers[j].Since, y.Reducers[j].Deadline = env.Height, d.dueSlice(from)
		}
	}
	after, events := d.finish()
	return after, events, nil
}

// sliceOf finds the slice that a message of a member is about.
func sliceOf(s State, from string, round uint32, closed int64, slice uint32) (Slice, error) {
	if err := sender(s, from); err != nil {
		return Slice{}, err
	}
	switch {
	case round != s.Round || closed != s.Closed:
		return Slice{}, fmt.Errorf("%w: round %d with its last commitment in block %d, the run is in round %d with %d",
			ErrStale, round, closed, s.Round, s.Closed)
	case len(s.Slices) == 0:
		return Slice{}, fmt.Errorf("%w: no reducers are drawn", ErrWrongPhase)
	case uint64(slice) >= uint64(len(s.Slices)):
		return Slice{}, fmt.Errorf("%w: slice %d, the round has %d", ErrBadSlice, slice, len(s.Slices))
	}
	return s.Slices[slice], nil
}
