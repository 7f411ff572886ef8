package run

import (
	"slices"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/schedule"
)

// panel is how many members compute a slice that nobody contests and that is not audited.
const panel = 2

// MergeDeadline is the number of blocks in which a reducer owes its next seal. However quick others were, it has time
// to find that nobody has an update that it needs, and to report that: an eighth of what it has when nobody was seen
// yet.
func (c Crew) MergeDeadline() int64 {
	return max(schedule.Adapt(c.ReduceBlocks, c.Terms.Deadlines.Attest), c.Terms.Deadlines.Attest/8)
}

func (d *reducing) dueSlice(id string) int64 {
	m, _ := d.Member(id)
	return d.env.Height + d.MergeDeadline()<<min(m.Silent, 4)
}

// reduce moves the slices of the round on: it draws reducers, and others for those that are late or have left.
func (d *reducing) reduce() {
	if d.env.Beacon.IsZero() || d.env.Height <= d.Closed {
		return
	}
	if len(d.Slices) == 0 {
		d.dealSlices()
		return
	}
	for i := range d.Slices {
		if !d.halted() {
			d.move(uint32(i))
		}
	}
	d.combined()
}

// dealSlices draws the reducers of every slice from the active members, each as often as any other but for one.
func (d *reducing) dealSlices() {
	members := d.shuffled(slices.Concat(d.Active(Worker), d.Active(Verifier)))
	d.Slices = make([]Slice, d.Terms.Slices)
	turn := 0
	for i := range d.Slices {
		d.Slices[i] = Slice{Status: Reducing, Panel: panel}
		for range min(panel, len(members)) {
			d.assign(uint32(i), members[turn%len(members)])
			turn++
		}
	}
}

func (d *reducing) assign(slice uint32, member string) {
	x := &d.Slices[slice]
	x.Reducers = append(x.Reducers, Reducer{Member: member, Since: d.env.Height, Deadline: d.dueSlice(member)})
	d.emit(Event{Kind: SliceAssigned, Round: d.Round, Unit: slice, Who: member})
}

// live lists the reducers of a slice that count.
func (d *reducing) live(slice uint32) (found []int) {
	for i, r := range d.Slices[slice].Reducers {
		if !r.Late && d.active(r.Member) {
			found = append(found, i)
		}
	}
	return found
}

// move moves one slice on.
func (d *reducing) move(slice uint32) {
	x := &d.Slices[slice]
	if x.Status == Agreed {
		return
	}
	d.lateReducers(slice)
	live := d.live(slice)
	if x.Status == Contested {
		for _, id := range d.others(*x) {
			d.assign(slice, id) // joined since
		}
		d.compare(slice)
		return
	}
	if n := int(x.Panel) - len(live); n > 0 && d.drawReducers(slice, n) {
		x.Status = Reducing
		return
	}
	if x.Status == Showing {
		d.compare(slice)
		return
	}
	if slices.ContainsFunc(live, func(i int) bool { return x.Reducers[i].Seal.IsZero() }) {
		return
	}
	if !x.Audited { // an audit is drawn when those who are audited are bound
		if d.env.Height <= x.Sealed {
			return
		}
		x.Audited = true
		if d.pickSlice("slice audit", slice, audit.Certain) < int(d.Terms.AuditPPM) && d.drawReducers(slice, 1) {
			x.Panel++
			return
		}
	}
	x.Status = Showing
	for _, i := range live {
		x.Reducers[i].Deadline = d.dueSlice(x.Reducers[i].Member)
	}
}

// lateReducers replaces those that missed a deadline, or in a contest gives them more time: there is nobody else.
func (d *reducing) lateReducers(slice uint32) {
	x, stuck := &d.Slices[slice], d.units.stuck()
	for _, i := range d.live(slice) {
		r := &x.Reducers[i]
		owes := r.CID == "" && (x.Status != Reducing || r.Seal.IsZero())
		if !owes || d.env.Height <= r.Deadline {
			continue
		}
		d.emit(Event{Kind: SliceMissed, Round: d.Round, Unit: slice, Who: r.Member, Why: WhyMissedDeadline})
		if !stuck {
			d.change(r.Member, func(m *Member) { m.Silent++ })
		}
		if m, _ := d.Member(r.Member); m.Silent >= patience {
			d.leave(r.Member, WhyMissedSlices)
		}
		if r.Deadline = d.dueSlice(r.Member); x.Status != Contested {
			r.Late = true
		}
	}
}

// drawReducers draws more reducers of a slice from the active members that are none, or, when nobody else is left, from
// those that were late. It reports whether it found any.
func (d *reducing) drawReducers(slice uint32, n int) bool {
	x := &d.Slices[slice]
	pool := d.others(*x)
	if len(pool) == 0 {
		without := *x
		without.Reducers = slices.DeleteFunc(slices.Clone(x.Reducers), func(r Reducer) bool { return r.Late })
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
func (d *reducing) others(x Slice) []string {
	return slices.DeleteFunc(slices.Concat(d.Active(Worker), d.Active(Verifier)),
		func(id string) bool { return x.reducer(id) >= 0 })
}

func (d *reducing) pickSlice(purpose string, slice uint32, n int) int {
	return audit.Pick(d.env.Beacon, purpose, d.Terms.Job, d.Round, slice, uint32(len(d.Slices[slice].Reducers)), n)
}

// compare decides a slice when all of its reducers have shown the same, and lets it be contested when they have not; a
// contest ends when a quorum has shown the same.
func (d *reducing) compare(slice uint32) {
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
	case x.Status == Contested:
		for _, i := range live {
			if cid := x.Reducers[i].CID; cid != "" && d.quorate(counts[cid]) {
				d.agree(slice, cid)
				return
			}
		}
		if shown == d.actives() {
			d.halt(WhyNoQuorum)
		}
	case shown < len(live) || shown == 0:
	case len(counts) == 1:
		d.agree(slice, x.Reducers[live[0]].CID)
	default:
		d.contest(slice)
	}
}

// contest asks every active member for a slice.
func (d *reducing) contest(slice uint32) {
	x := &d.Slices[slice]
	d.emit(Event{Kind: SliceContested, Round: d.Round, Unit: slice})
	x.Status, x.CID = Contested, ""
	for _, id := range d.others(*x) {
		d.assign(slice, id)
	}
	for i := range x.Reducers {
		r := &x.Reducers[i]
		r.Late, r.Deadline = false, d.dueSlice(r.Member)
	}
	if d.Phase == Attest {
		d.Votes = nil
		d.enter(Reduce)
	}
}

// agree decides a slice. Who found something else takes no further part, and what it did in rounds that are not final
// is audited: nobody can prove to the chain who is right, so nobody is slashed.
func (d *reducing) agree(slice uint32, cid string) {
	x := &d.Slices[slice]
	var wrong []string
	for _, i := range d.live(slice) {
		if r := x.Reducers[i]; r.CID != "" && r.CID != cid {
			wrong = append(wrong, r.Member)
		}
	}
	x.Status, x.CID = Agreed, cid
	x.Reducers = slices.DeleteFunc(slices.Clone(x.Reducers), func(r Reducer) bool { return r.CID != cid })
	for _, id := range wrong {
		d.leave(id, WhyWrongSlice)
		d.change(id, func(m *Member) { m.Passed = 0 })
		for _, l := range d.rounds() {
			if d.Terms.AuditPPM > 0 {
				d.audits.suspect(l, id)
			}
		}
	}
}

// combined goes on to the attestation when every slice is agreed.
func (d *reducing) combined() {
	undecided := func(x Slice) bool { return x.Status != Agreed }
	if d.Phase == Reduce && len(d.Slices) > 0 && !slices.ContainsFunc(d.Slices, undecided) {
		d.enter(Attest)
		d.emit(Event{Kind: SlicesAgreed, Round: d.Round})
	}
}
