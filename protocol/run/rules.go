package run

import (
	"github.com/starling-network/starling/protocol/run/assignment"
	"github.com/starling-network/starling/protocol/run/auditing"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/lineage"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/reducing"
	"github.com/starling-network/starling/protocol/run/seating"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// rules has the parts of the rules, which edit one draft. A part calls those above it: seats, audits and panels,
// assignment, rollbacks, lineage and reducing. Audits alone take units from their workers, too (withholder). A message
// says what happened to a unit or a member; finish then draws the consequences for everything else.
type rules struct {
	*transition.Draft
	*seating.Seats
	*auditing.Audits
	*auditing.Panels
	*assignment.Assignment
	*lineage.Rollbacks
	*lineage.Lineage
	*reducing.Reducing
}

func (s State) edit(env transition.Env) *rules {
	d := transition.Begin(s.Progress, env)
	seats := seating.New(d)
	audits, panels := auditing.New(d, seats)
	units := assignment.New(d, audits)
	audits.Take(units)
	rollbacks, lineage := lineage.New(d, seats, audits, panels, units)
	return &rules{d, seats, audits, panels, units, rollbacks, lineage, reducing.New(d, audits, units)}
}

// finish releases the duties of inactive members, and sets the phase that follows from the units.
func (d *rules) finish() (State, []event.Event) {
	d.Unavailable()
	d.reassignDuties()
	d.SyncPhase()
	return State{d.Progress}, d.Events
}

// reassignDuties gives the duties of inactive members to others; in a run that just halted it only ends them. Disputes
// continue, and seals must still be opened: a party that leaves does not escape its verdict.
func (d *rules) reassignDuties() {
	out := d.inactive()
	if len(out) == 0 {
		return
	}
	d.ReleaseReports(out)
	reassign := d.Reassigning()
	for _, l := range d.EditRounds() {
		for i, u := range l.Units {
			if u.Status == work.Assigned && out[u.Worker] {
				reassign(l, i, d.WhyGone(u.Worker, reason.WorkerLeft))
			}
		}
	}
	for _, l := range d.EditAll() {
		for i, u := range l.Units {
			if u.Status != work.Auditing && u.Status != work.Sealed || !out[u.Verifier] || d.Tolerant(*u) {
				continue
			}
			v, _ := d.Member(u.Verifier)
			if u.Status == work.Auditing || crew.Unbelieved(v) {
				d.Unanswered(l, i, u.Verifier, d.WhyGone(u.Verifier, reason.VerifierLeft))
				d.Audit(l, i)
			}
		}
	}
}

// inactive lists the members without duties: they left, or are on probation. Guests keep the duties that were drawn
// for them.
func (d *rules) inactive() map[string]bool {
	var out map[string]bool
	for i := range d.Members {
		if m := &d.Members[i]; !m.Active && !m.IsGuest() {
			if out == nil {
				out = map[string]bool{}
			}
			out[m.ID] = true
		}
	}
	return out
}
