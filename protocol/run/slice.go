package run

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
)

// ShowSlice shows a member's result for a slice. A reducer shows the result that its seal binds it to; in a contest
// every member shows its own; and until the round is attested, any member may contest an agreed slice by showing
// another result. closed is the height of the last commitment of the round, which identifies its updates.
func (s State) ShowSlice(env transition.Env, from string, round uint32, closed int64, slice uint32,
	cid string) (State, []event.Event, error) {
	x, err := sliceOf(s, from, round, closed, slice)
	if err != nil {
		return s, nil, err
	}
	if !terms.ValidCID(cid) {
		return s, nil, fmt.Errorf("%w: CID of %d bytes, wanted 1 to %d", refusal.ErrBadSlice, len(cid), terms.MaxCID)
	}
	i := x.ReducerOf(from)
	switch {
	case x.Status == progress.Reducing:
		return s, nil, fmt.Errorf("%w: not every reducer of slice %d is bound", refusal.ErrWrongPhase, slice)
	case x.Status == progress.Agreed && x.CID == cid, i >= 0 && x.Reducers[i].CID != "" && x.Status != progress.Agreed:
		return s, nil, fmt.Errorf("%w: slice %d", refusal.ErrDuplicate, slice)
	case x.Status == progress.Showing && (i < 0 || x.Reducers[i].Late):
		return s, nil, fmt.Errorf("%w: slice %d is reduced by others", refusal.ErrNotYours, slice)
	case x.Status == progress.Showing && x.Reducers[i].Seal != s.SliceSeal(from, slice, cid):
		return s, nil, fmt.Errorf("%w: this is not what was sealed for slice %d", refusal.ErrBadSlice, slice)
	case x.Status == progress.Contested && i < 0:
		return s, nil, fmt.Errorf("%w: %s has just joined, and is asked for slice %d in the next block", refusal.ErrNotYours,
			from, slice)
	}
	d := s.edit(env)
	y := &d.Slices[slice]
	if x.Status == progress.Agreed {
		d.AskAll(slice)
		i = y.ReducerOf(from)
	}
	y.Reducers[i].CID, y.Reducers[i].Late = cid, false
	d.Compare(slice)
	d.Combined()
	after, events := d.finish()
	return after, events, nil
}

// SealSlice binds a reducer to its result: seal is a SliceSeal.
func (s State) SealSlice(env transition.Env, from string, round uint32, closed int64, slice uint32,
	seal canon.Digest) (State, []event.Event, error) {
	x, err := sliceOf(s, from, round, closed, slice)
	if err != nil {
		return s, nil, err
	}
	i := x.ReducerOf(from)
	switch {
	case x.Status != progress.Reducing:
		return s, nil, fmt.Errorf("%w: all reducers of slice %d are bound", refusal.ErrWrongPhase, slice)
	case i < 0 || x.Reducers[i].Late:
		return s, nil, fmt.Errorf("%w: slice %d is reduced by others", refusal.ErrNotYours, slice)
	case !x.Reducers[i].Seal.IsZero():
		return s, nil, fmt.Errorf("%w: slice %d is sealed", refusal.ErrDuplicate, slice)
	case seal.IsZero():
		return s, nil, fmt.Errorf("%w: no seal", refusal.ErrBadSlice)
	}
	d := s.edit(env)
	d.ReduceBlocks = schedule.Remember(d.ReduceBlocks, d.Waited(x.Reducers[i].Since))
	d.Change(from, func(m *crew.Member) { m.Silent = 0 })
	d.Slices[slice].Reducers[i].Seal, d.Slices[slice].Sealed = seal, env.Height
	for k := range d.Slices { // the reducer turns to its next slice
		y := &d.Slices[k]
		if j := y.ReducerOf(from); j >= 0 && y.Status == progress.Reducing && !y.Reducers[j].Late &&
			y.Reducers[j].Seal.IsZero() {
			y.Reducers[j].Since, y.Reducers[j].Deadline = env.Height, d.DueSlice(from)
		}
	}
	after, events := d.finish()
	return after, events, nil
}

// sliceOf finds the slice that a message of a member is about.
func sliceOf(s State, from string, round uint32, closed int64, slice uint32) (progress.Slice, error) {
	if err := admission.Sender(s.Progress, from); err != nil {
		return progress.Slice{}, err
	}
	switch {
	case round != s.Round || closed != s.Closed:
		return progress.Slice{}, fmt.Errorf(
			"%w: round %d with its last commitment in block %d, the run is in round %d with %d",
			refusal.ErrStale,
			round,
			closed,
			s.Round,
			s.Closed,
		)
	case len(s.Slices) == 0:
		return progress.Slice{}, fmt.Errorf("%w: no reducers are drawn", refusal.ErrWrongPhase)
	case uint64(slice) >= uint64(len(s.Slices)):
		return progress.Slice{}, fmt.Errorf("%w: slice %d, the round has %d", refusal.ErrBadSlice, slice, len(s.Slices))
	}
	return s.Slices[slice], nil
}
