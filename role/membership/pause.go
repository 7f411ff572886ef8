package membership

import (
	"math"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role"
)

// pause is that of a member. The zero value is none.
type pause struct {
	on    bool
	since int64 // height
	until int64 // height at which it will hardly be over yet; 0: that is not known
}

// Paused reports whether the member is paused.
func (m *Membership) Paused() bool { return m.pause.on }

func (m *Membership) begin(e role.Pause) {
	if !m.pause.on {
		m.pause = pause{on: true, since: m.height}
	}
	m.pause.until = e.Until
}

// handBackBlocks is how many blocks before the last moment a paused member leaves: the message takes one or two.
const handBackBlocks = 3

// handsBack reports whether a paused member leaves the run, so that its units and audits go to others before they are
// late. It stays as long as it could still do them in time if the pause ended now, and its end is not known to be
// later. Leaving costs nothing; a member that left may join again by its offer.
func (m *Membership) handsBack(b role.Block) bool {
	s := b.Run
	if !m.pause.on || !s.MayLeave(m.id) {
		return false
	}
	last := m.lastStart(s)
	return b.Height+handBackBlocks >= last || m.pause.until > min(last, b.Height+s.TrainDeadline())
}

// lastStart is the height by which the pause has to be over so that no duty of the member is late.
func (m *Membership) lastStart(s run.State) int64 {
	last := min(m.lastStartOfUnits(s), m.lastStartOfAudits(s))
	if t, ok := s.Probation(m.id); ok && t.Task.Worker != "" && t.Seal.IsZero() {
		last = min(last, t.Deadline-(t.Deadline-t.Asked)/2)
	}
	for i, x := range s.Slices {
		if s.Owes(m.id, i) != progress.OwesNothing {
			r := x.Reducers[x.ReducerOf(m.id)]
			last = min(last, r.Deadline-(r.Deadline-r.Since)/2)
		}
	}
	if m.Seated(s) && s.Attestable() && !s.Voted(m.id) {
		last = min(last, s.Since+s.Terms.Deadlines.Attest/2)
	}
	return last
}

// needs is the number of blocks that a member needs for a duty: its measured time, or half of the time it has.
func needs(pace, has int64) int64 {
	if pace > 0 {
		return min(pace, has)
	}
	return has / 2
}

// lastStartOfUnits is lastStart of the units that the member is to commit, one after the other. The steps before the
// pause are in its draft.
func (m *Membership) lastStartOfUnits(s run.State) int64 {
	units := s.Work(m.id)
	if len(units) == 0 {
		return math.MaxInt64
	}
	member, _ := s.Member(m.id)
	due, left := int64(math.MaxInt64), int64(0)
	for _, u := range units {
		due = min(due, u.Deadline)
		left += needs(s.Terms.Share(u.Index, member.Pace()), u.Deadline-u.AssignedAt)
	}
	return due - max(0, left-max(0, m.pause.since-units[0].AssignedAt))
}

// lastStartOfAudits is lastStart of the audits that the member is to answer, of which it owes one at a time.
func (m *Membership) lastStartOfAudits(s run.State) int64 {
	last := int64(math.MaxInt64)
	member, _ := s.Member(m.id)
	for _, d := range s.Audits(m.id) {
		since, due := d.AssignedAt, d.Unit.Deadline
		if k := d.ReportOf(m.id); k >= 0 {
			since, due = d.Looks[k].Since, d.Looks[k].Deadline
		}
		last = min(last, due-needs(member.Pace(), due-since))
	}
	return last
}
