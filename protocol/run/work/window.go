package work

import (
	"slices"
)

func (l RoundState) Has(id UnitID) bool {
	return l.Round == id.Round && uint64(id.Unit) < uint64(len(l.Units)) && l.Units[id.Unit].Attempt == id.Attempt
}

// Rounds are the rounds that are not final: the open ones, oldest first, and the current one.
func (w Window) Rounds() []RoundState { return append(slices.Clip(w.Open), w.RoundState) }

// All lists the rounds with units that may still have consequences for a member: Rounds, and those that were rolled
// back.
func (w Window) All() []RoundState { return append(w.Rounds(), w.RolledBack...) }

// Stored lists the rounds whose blobs are needed: All, and final rounds that are read.
func (w Window) Stored() []RoundState { return append(w.All(), w.Read...) }

// Each yields the rounds that All lists, in place; the caller must not change them.
func (w *Window) Each(yield func(*RoundState) bool) {
	for i := range w.Open {
		if !yield(&w.Open[i]) {
			return
		}
	}
	if !yield(&w.RoundState) {
		return
	}
	for i := range w.RolledBack {
		if !yield(&w.RolledBack[i]) {
			return
		}
	}
}

// At returns a round, unless it is final or not yet begun.
func (w Window) At(round uint32) (RoundState, bool) {
	for _, l := range w.Open {
		if l.Round == round {
			return l, true
		}
	}
	return w.RoundState, w.Round == round
}

// Answers returns a round with the units that drew what other rounds learn from: as At does, or a final one.
func (w Window) Answers(round uint32) (RoundState, bool) {
	for _, l := range w.Read {
		if l.Round == round {
			return l, true
		}
	}
	return w.At(round)
}

// Oldest is the first round that is not final. Blobs of earlier rounds are no longer needed.
func (w Window) Oldest() uint32 {
	if len(w.Open) > 0 {
		return w.Open[0].Round
	}
	return w.Round
}

// Work lists the units of the current round that a worker has to commit now, by index. It owes one commitment per
// deadline, in any order.
func (w Window) Work(worker string) []Unit { return w.RoundState.owed(worker) }

// Drawing lists the units of earlier rounds that a worker has to commit now, by round and index: they draw.
func (w Window) Drawing(worker string) (owed []Unit) {
	for _, l := range w.Open {
		owed = append(owed, l.owed(worker)...)
	}
	return owed
}

func (l RoundState) owed(worker string) []Unit {
	return l.Where(func(u Unit) bool { return u.Status == Assigned && u.Worker == worker })
}

// FailedDrawing reports whether a worker was late with a unit that draws, or has withheld its answers, in a round that
// is not final.
func (w Window) FailedDrawing(worker string) bool {
	failed := func(u *Unit) bool {
		return u.Draws && (slices.Contains(u.Refused, worker) || u.Withheld && u.Worker == worker)
	}
	return slices.ContainsFunc(w.Rounds(), func(l RoundState) bool { return slices.ContainsFunc(l.Units, failed) })
}

// AuditTarget is a unit with its round, for the member that audits or challenges it.
type AuditTarget struct {
	RoundState
	Unit
}

// Audits lists the units that a verifier has to audit now, by round and index. It owes one answer per deadline.
func (w Window) Audits(verifier string) []AuditTarget {
	var found []AuditTarget
	for _, l := range w.All() {
		for _, u := range l.Units {
			if u.Status == Auditing && u.Verifier == verifier || u.OwesReport(verifier) {
				found = append(found, AuditTarget{l, *u})
			}
		}
	}
	return found
}

// Playing returns the unit that an open dispute is about, and its round. A dispute that waits for another about the
// same unit is open and not playing.
func (w Window) Playing(id UnitID, challenger string) (AuditTarget, bool) {
	d, ok := w.Find(id)
	return d, ok && len(d.Challengers) > 0 && d.Challengers[0] == challenger
}

// Find returns an attempt at a unit, also one in a round that was rolled back, and its round.
func (w Window) Find(id UnitID) (AuditTarget, bool) {
	for _, l := range w.RolledBack {
		if l.Has(id) {
			return AuditTarget{l, *l.Units[id.Unit]}, true
		}
	}
	l, ok := w.At(id.Round)
	if !ok || !l.Has(id) {
		return AuditTarget{RoundState: l}, false
	}
	return AuditTarget{l, *l.Units[id.Unit]}, true
}

// Has reports whether Find finds an attempt at a unit.
func (w *Window) Has(id UnitID) bool {
	has := func(l RoundState) bool { return l.Has(id) }
	return has(w.RoundState) || slices.ContainsFunc(w.Open, has) || slices.ContainsFunc(w.RolledBack, has)
}

// Disputed reports whether a dispute about any unit is open.
func (w Window) Disputed() bool {
	return slices.ContainsFunc(w.All(), func(l RoundState) bool {
		return slices.ContainsFunc(l.Units, func(u *Unit) bool { return u.Status == Disputed })
	})
}

// Challenged reports whether a dispute of a challenger about an attempt at a unit is open.
func (w Window) Challenged(id UnitID, challenger string) bool {
	d, ok := w.Find(id)
	return ok && slices.Contains(d.Challengers, challenger)
}

// Where lists the units of a round for which which is true.
func (l RoundState) Where(which func(Unit) bool) []Unit {
	var found []Unit
	for _, u := range l.Units {
		if which(*u) {
			found = append(found, *u)
		}
	}
	return found
}
