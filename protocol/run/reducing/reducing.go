// Package reducing decides which members compute the slices of the next checkpoint for all, in a run whose terms want
// slices, and which result counts: reducers are drawn, sealed, shown and compared, and a slice on which they differ is
// contested by every member. It edits a transition.Draft, and combines no update itself.
package reducing

import (
	"slices"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/assignment"
	"github.com/starling-network/starling/protocol/run/auditing"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/transition"
)

// Reducing decides which members compute the slices of the next checkpoint, and which results count.
type Reducing struct {
	*transition.Draft
	audits *auditing.Audits
	units  *assignment.Assignment
}

// New returns how the slices of a draft are reduced.
func New(d *transition.Draft, audits *auditing.Audits, units *assignment.Assignment) *Reducing {
	return &Reducing{d, audits, units}
}

// panel is the number of members that compute a slice without an audit and without a contest.
const panel = 2

// DueSlice is the height by which a member owes its next word on a slice.
func (d *Reducing) DueSlice(id string) int64 {
	m, _ := d.Member(id)
	return d.Env.Height + d.MergeDeadline()<<min(m.Silent, 4)
}

// MoveOn moves the slices of the round on: it draws reducers, and others for those that are late or have left.
func (d *Reducing) MoveOn() {
	if d.Env.Beacon.IsZero() || d.Env.Height <= d.Closed {
		return
	}
	if len(d.Slices) == 0 {
		d.dealSlices()
		return
	}
	for i := range d.Slices {
		if !d.Halted() {
			d.move(uint32(i))
		}
	}
	d.Combined()
}

// dealSlices draws the reducers of every slice from the active members, each as often as any other but for one.
func (d *Reducing) dealSlices() {
	members := d.Shuffled(d.pool())
	d.Slices = make([]progress.Slice, d.Terms.Slices)
	turn := 0
	for i := range d.Slices {
		d.Slices[i] = progress.Slice{Status: progress.Reducing, Panel: panel}
		for range min(panel, len(members)) {
			d.assign(uint32(i), members[turn%len(members)])
			turn++
		}
	}
}

func (d *Reducing) assign(slice uint32, member string) {
	x := &d.Slices[slice]
	x.Reducers = append(x.Reducers, progress.Reducer{Member: member, Since: d.Env.Height, Deadline: d.DueSlice(member)})
	d.Emit(event.Event{Kind: event.SliceAssigned, Round: d.Round, Unit: slice, Who: member})
}

// live lists the reducers of a slice that count.
func (d *Reducing) live(slice uint32) (found []int) {
	for i, r := range d.Slices[slice].Reducers {
		if !r.Late && d.IsActive(r.Member) {
			found = append(found, i)
		}
	}
	return found
}

// move moves one slice on.
func (d *Reducing) move(slice uint32) {
	x := &d.Slices[slice]
	if x.Status == progress.Agreed {
		return
	}
	d.lateReducers(slice)
	live := d.live(slice)
	if x.Status == progress.Contested {
		for _, id := range d.others(*x) {
			d.assign(slice, id) // joined since
		}
		d.Compare(slice)
		return
	}
	if n := int(x.Panel) - len(live); n > 0 && d.drawReducers(slice, n) {
		x.Status = progress.Reducing
		return
	}
	if x.Status == progress.Showing {
		d.Compare(slice)
		return
	}
	if slices.ContainsFunc(live, func(i int) bool { return x.Reducers[i].Seal.IsZero() }) {
		return
	}
	if !x.Audited { // an audit is drawn once all reducers of the slice are bound
		if d.Env.Height <= x.Sealed {
			return
		}
		x.Audited = true
		if d.pickSlice("slice audit", slice, audit.Certain) < int(d.Terms.AuditPPM) && d.drawReducers(slice, 1) {
			x.Panel++
			return
		}
	}
	x.Status = progress.Showing
	for _, i := range live {
		x.Reducers[i].Deadline = d.DueSlice(x.Reducers[i].Member)
	}
}

// lateReducers replaces reducers that missed a deadline. In a contest it gives them more time instead, since every
// member is a reducer already.
func (d *Reducing) lateReducers(slice uint32) {
	x, stuck := &d.Slices[slice], d.units.Stuck()
	for _, i := range d.live(slice) {
		r := &x.Reducers[i]
		owes := r.CID == "" && (x.Status != progress.Reducing || r.Seal.IsZero())
		if !owes || d.Env.Height <= r.Deadline {
			continue
		}
		d.Emit(event.Event{Kind: event.SliceMissed, Round: d.Round, Unit: slice, Who: r.Member, Why: reason.MissedDeadline})
		if !stuck {
			d.Change(r.Member, func(m *crew.Member) { m.Silent++ })
		}
		if m, _ := d.Member(r.Member); m.Silent >= transition.MaxMissed {
			d.Leave(r.Member, reason.MissedSlices)
		}
		if r.Deadline = d.DueSlice(r.Member); x.Status != progress.Contested {
			r.Late = true
		}
	}
}

// drawReducers draws more reducers of a slice from the active members that are none, or, if all are, from those that
// were late. It reports whether it found any.
func (d *Reducing) drawReducers(slice uint32, n int) bool {
	x := &d.Slices[slice]
	pool := d.others(*x)
	if len(pool) == 0 {
		without := *x
		without.Reducers = slices.DeleteFunc(slices.Clone(x.Reducers), func(r progress.Reducer) bool { return r.Late })
		if pool = d.others(without); len(pool) == 0 {
			return false
		}
		x.Reducers = without.Reducers
	}
	found := min(n, len(pool))
	for k := range found {
		i := d.pickSlice("reducer", slice, len(pool)-k)
		d.assign(slice, pool[i])
		pool[i] = pool[len(pool)-1-k]
	}
	return found > 0
}

// others lists the active members that are not among the reducers of a slice.
func (d *Reducing) others(x progress.Slice) []string {
	return slices.DeleteFunc(d.pool(), func(id string) bool { return x.ReducerOf(id) >= 0 })
}

// pool lists the active members that reduce slices: all but those without the stake of their role.
func (d *Reducing) pool() []string {
	return slices.DeleteFunc(slices.Concat(d.Active(crew.Worker), d.Active(crew.Verifier)),
		func(id string) bool { m, _ := d.Member(id); return m.Earning })
}

func (d *Reducing) pickSlice(purpose string, slice uint32, n int) int {
	return audit.Pick(d.Env.Beacon, purpose, d.Terms.Job, d.Round, slice, uint32(len(d.Slices[slice].Reducers)), n)
}

// Compare decides a slice when all of its reducers have shown the same, and lets it be contested when they have not; a
// contest ends when a quorum has shown the same.
func (d *Reducing) Compare(slice uint32) {
	x := &d.Slices[slice]
	counts, shown := map[string]map[string]bool{}, 0
	live := d.live(slice)
	for _, i := range live {
		if cid := x.Reducers[i].CID; cid != "" {
			if counts[cid] == nil {
				counts[cid] = map[string]bool{}
			}
			counts[cid][x.Reducers[i].Member] = true
			shown++
		}
	}
	switch {
	case x.Status == progress.Contested:
		for _, i := range live {
			if cid := x.Reducers[i].CID; cid != "" && d.Quorate(counts[cid]) {
				d.agree(slice, cid)
				return
			}
		}
		if shown == d.CountActive() {
			d.Halt(reason.NoQuorum)
		}
	case shown < len(live) || shown == 0:
	case len(counts) == 1:
		d.agree(slice, x.Reducers[live[0]].CID)
	default:
		d.AskAll(slice)
	}
}

// AskAll asks every active member for a slice.
func (d *Reducing) AskAll(slice uint32) {
	x := &d.Slices[slice]
	d.Emit(event.Event{Kind: event.SliceContested, Round: d.Round, Unit: slice})
	x.Status, x.CID = progress.Contested, ""
	for _, id := range d.others(*x) {
		d.assign(slice, id)
	}
	for i := range x.Reducers {
		r := &x.Reducers[i]
		r.Late, r.Deadline = false, d.DueSlice(r.Member)
	}
	if d.Phase == progress.Attest {
		d.Votes = nil
		d.Enter(progress.Reduce)
	}
}

// agree decides a slice. A member with another result takes no further part, and its units in rounds that are not
// final are audited. It is not slashed: the chain has no proof of which result is right.
func (d *Reducing) agree(slice uint32, cid string) {
	x := &d.Slices[slice]
	var wrong []string
	for _, i := range d.live(slice) {
		if r := x.Reducers[i]; r.CID != "" && r.CID != cid {
			wrong = append(wrong, r.Member)
		}
	}
	x.Status, x.CID = progress.Agreed, cid
	x.Reducers = slices.DeleteFunc(slices.Clone(x.Reducers), func(r progress.Reducer) bool { return r.CID != cid })
	for _, id := range wrong {
		d.Leave(id, reason.WrongSlice)
		d.Change(id, func(m *crew.Member) { m.Passed = 0 })
		for _, l := range d.EditRounds() {
			if d.Terms.AuditPPM > 0 {
				d.audits.Suspect(l, id)
			}
		}
	}
}

// Combined begins the attestation when every slice is agreed.
func (d *Reducing) Combined() {
	undecided := func(x progress.Slice) bool { return x.Status != progress.Agreed }
	if d.Phase == progress.Reduce && len(d.Slices) > 0 && !slices.ContainsFunc(d.Slices, undecided) {
		d.Enter(progress.Attest)
		d.Emit(event.Event{Kind: event.SlicesAgreed, Round: d.Round})
	}
}
