package run

import "slices"

// Rounds may overlap: the updates of a round travel, and are combined and attested, while the next one is trained. A
// unit begins it from the checkpoint that is there, less its own progress of the round before, which it has handed on
// to itself. So a round ends when its units are committed and the checkpoint after it is attested, which is made of the
// updates of the round before.
//
// The last round of a group (Terms.Carry) waits for its own updates, too, and the first of the next has nothing to wait
// for.

// Sent are the units whose updates make the next checkpoint, in order of round and index.
func (p Progress) Sent() Units {
	if !p.Terms.Overlap {
		return p.Units
	}
	var units Units
	for _, round := range p.Terms.Applied(p.Round) {
		if l, ok := p.At(round); ok {
			units = append(units, l.Units...)
		}
	}
	return units
}

// ahead reports whether the next checkpoint is made without the updates of the current round, so that members attest it
// while they train.
func (p Progress) ahead() bool { return p.Terms.Overlap && p.Terms.Carries(p.Round) }

// Combines reports whether all is committed that the next checkpoint is made of.
func (p Progress) Combines() bool {
	_, diverged := p.Diverged()
	return p.Phase == Attest && !diverged || p.Phase == Train && p.ahead()
}

// ended reports whether the current round waits for nothing but the attestation of the checkpoint after it.
func (d *lineage) ended() bool {
	_, diverged := d.Diverged()
	return d.Phase == Attest && !diverged
}

// unavailable takes the run back to the round before when most members cannot fetch an update of it that the next
// checkpoint is made of, and gives such units to other workers, as withheld does in the current round.
func (d *rollbacks) unavailable() {
	if d.halted() || !d.Terms.Overlap || d.Round == 0 || !slices.Contains(d.Terms.Applied(d.Round), d.Round-1) {
		return
	}
	before, ok := d.At(d.Round - 1)
	if !ok {
		return
	}
	lacks := func(u *Unit) bool { return u.Status == Accepted && d.most(u.Worker, u.Missing) }
	first := slices.IndexFunc(before.Units, lacks)
	if first < 0 {
		return
	}
	d.seats.cancelProbation(func(e ProbationTask) bool { return e.Round > before.Round })
	d.rollback(before.Round, *before.Units[first])
	for i := range d.Units {
		if lacks(d.Units[i]) {
			d.units.withheld(i)
		}
	}
}
