package run

import (
	"slices"
)

// transition has the parts of the rules, which edit one draft. A part calls those above it: seats, audits and panels,
// assignment, rollbacks, lineage and reducing. Audits alone take units from their workers, too (withholder). A message
// says what happened to a unit or a member; finish then draws the consequences for everything else.
type transition struct {
	*draft
	*seats
	*audits
	*panels
	*assignment
	*rollbacks
	*lineage
	*reducing
}

// seats is who joins and leaves the run, and the guests, who have no seat.
type seats struct{ *draft }

// audits is the audits of exact work: who looks at which unit, what follows from the answer, and from none.
type audits struct {
	*draft
	seats  *seats
	panels *panels
	units  withholder
}

// panels is the audits of tolerant work, by several verifiers that are bound to what they find.
type panels struct {
	*draft
	audits *audits
}

// withholder takes units of the current round from their workers, without a conviction.
type withholder interface {
	withheld(i int)
	withhold(i int, why string, held *Held)
}

// assignment is which worker has which unit of the current round, and by when it owes it.
type assignment struct {
	*draft
	audits *audits
}

// rollbacks is what follows from a conviction: the run goes back, and the rounds after are kept aside.
type rollbacks struct {
	*draft
	seats  *seats
	audits *audits
	units  *assignment
}

// lineage is how rounds end: they are attested, become final, or the run diverges.
type lineage struct {
	*draft
	rollbacks *rollbacks
}

// reducing is who computes the slices of the next checkpoint, and what they agree on.
type reducing struct {
	*draft
	audits *audits
	units  *assignment
}

// edit copies what transitions write in place, but for the units, of which unit copies those that are written. The
// slices inside a unit, and the votes and waits, are only replaced.
func (s State) edit(env Env) *transition {
	s.Members = slices.Clone(s.Members)
	s.Units = slices.Clone(s.Units)
	s.Probations = slices.Clone(s.Probations)
	s.Open = slices.Clone(s.Open)
	s.RolledBack = slices.Clone(s.RolledBack)
	s.Slices = slices.Clone(s.Slices)
	for i := range s.Slices {
		s.Slices[i].Reducers = slices.Clone(s.Slices[i].Reducers)
	}
	for _, laps := range [][]RoundState{s.Open, s.RolledBack} {
		for i := range laps {
			laps[i].Units = slices.Clone(laps[i].Units)
		}
	}
	d := &draft{State: s, env: env}
	seats := &seats{d}
	audits := &audits{draft: d, seats: seats}
	panels := &panels{d, audits}
	units := &assignment{d, audits}
	audits.panels, audits.units = panels, units
	rollbacks := &rollbacks{d, seats, audits, units}
	return &transition{d, seats, audits, panels, units, rollbacks, &lineage{d, rollbacks}, &reducing{d, audits, units}}
}

// finish releases the duties of members who left, and lets the phase follow the units.
func (d *transition) finish() (State, []Event) {
	d.unavailable()
	d.reassignDuties()
	d.syncPhase()
	return d.State, d.events
}

// reassignDuties hands on what inactive members still had to do. In a run that just halted it only ends it. Disputes go
// on, and seals are to be opened: a party that leaves is not spared its verdict.
func (d *transition) reassignDuties() {
	out := d.inactive()
	if len(out) == 0 {
		return
	}
	d.releaseLooks(out)
	for i, u := range d.Units {
		if u.Status == Assigned && out[u.Worker] {
			d.reassign(i, d.gone(u.Worker, WhyWorkerLeft))
		}
	}
	for _, l := range d.all() {
		for i, u := range l.Units {
			if u.Status != Auditing && u.Status != Sealed || !out[u.Verifier] || d.Tolerant(*u) {
				continue
			}
			v, _ := d.Member(u.Verifier)
			if u.Status == Auditing || sealUnopenable(v) {
				d.unanswered(l, i, u.Verifier, d.gone(u.Verifier, WhyVerifierLeft))
				d.audit(l, i)
			}
		}
	}
}

// inactive are the members who have no duties: they left, or are on trial. Guests have those that were drawn for them.
func (d *transition) inactive() map[string]bool {
	var out map[string]bool
	for i := range d.Members {
		if m := &d.Members[i]; !m.Active && !m.guest() {
			if out == nil {
				out = map[string]bool{}
			}
			out[m.ID] = true
		}
	}
	return out
}
