package run

import (
	"cmp"
	"slices"
)

// Member returns the member with an ID, active or not.
func (s State) Member(id string) (Member, bool) {
	i, ok := s.member(id)
	if !ok {
		return Member{}, false
	}
	return s.Members[i], true
}

func (s State) member(id string) (int, bool) {
	return slices.BinarySearchFunc(s.Members, id, func(m Member, id string) int { return cmp.Compare(m.ID, id) })
}

// Active lists the active members of a role, in order of ID.
func (s State) Active(r Role) []string {
	var ids []string
	for _, m := range s.Members {
		if m.Active && m.Role == r {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func (s State) actives() int {
	n := 0
	for _, m := range s.Members {
		if m.Active {
			n++
		}
	}
	return n
}

func (s State) over() bool { return s.Phase == Done || s.Phase == Halted }

// Rounds are the rounds that are not final: the open ones, oldest first, and the current one.
func (s State) Rounds() []RoundState { return append(slices.Clip(s.Open), s.RoundState) }

// All are the rounds about whose units somebody may have to answer: Laps, and those that were rolled back.
func (s State) All() []RoundState { return append(s.Rounds(), s.RolledBack...) }

// Each yields what All lists, in place: nobody changes it.
func (s *State) Each(yield func(*RoundState) bool) {
	for i := range s.Open {
		if !yield(&s.Open[i]) {
			return
		}
	}
	if !yield(&s.RoundState) {
		return
	}
	for i := range s.RolledBack {
		if !yield(&s.RolledBack[i]) {
			return
		}
	}
}

// At returns a round, unless it is final or not yet begun.
func (s State) At(round uint32) (RoundState, bool) {
	for _, l := range s.Open {
		if l.Round == round {
			return l, true
		}
	}
	return s.RoundState, s.Round == round
}

// Oldest is the first round that is not final. What was needed for earlier ones is needed no more.
func (s State) Oldest() uint32 {
	if len(s.Open) > 0 {
		return s.Open[0].Round
	}
	return s.Round
}

// Work lists the units that a worker has to commit now, by index. It owes one commitment per deadline, in any order.
func (s State) Work(worker string) []Unit {
	var owed []Unit
	for _, u := range s.Units {
		if u.Status == Assigned && u.Worker == worker {
			owed = append(owed, *u)
		}
	}
	return owed
}

// AuditTarget is a unit that somebody has to look at, in its round.
type AuditTarget struct {
	RoundState
	Unit
}

// Audits lists the units that a verifier has to audit now, by round and index. It owes one answer per deadline.
func (s State) Audits(verifier string) []AuditTarget {
	var found []AuditTarget
	for _, l := range s.All() {
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
func (s State) Playing(id UnitID, challenger string) (AuditTarget, bool) {
	d, ok := s.Find(id)
	return d, ok && len(d.Challengers) > 0 && d.Challengers[0] == challenger
}

// Find returns an attempt at a unit, also one in a round that was rolled back, and its round.
func (s State) Find(id UnitID) (AuditTarget, bool) {
	d, err := s.locate(id)
	return d, err == nil
}

// Has reports whether Find finds an attempt at a unit.
func (s *State) Has(id UnitID) bool {
	has := func(l RoundState) bool { return l.has(id) }
	return has(s.RoundState) || slices.ContainsFunc(s.Open, has) || slices.ContainsFunc(s.RolledBack, has)
}

// Disputed reports whether a dispute about any unit is open.
func (s State) Disputed() bool {
	return slices.ContainsFunc(s.All(), func(l RoundState) bool {
		return slices.ContainsFunc(l.Units, func(u *Unit) bool { return u.Status == Disputed })
	})
}

// Challenged reports whether a dispute of a challenger about an attempt at a unit is open.
func (s State) Challenged(id UnitID, challenger string) bool {
	d, ok := s.Find(id)
	return ok && slices.Contains(d.Challengers, challenger)
}

// Voted reports whether a member has attested the current round.
func (s State) Voted(id string) bool {
	return slices.ContainsFunc(s.Votes, func(v Vote) bool { return v.Member == id })
}

// Attestation is what a member signs who finds the checkpoint (root, cid) after the current round. It is defined when
// every unit is committed that it is made of, see Combines.
func (s State) Attestation(next Checkpoint) Attestation {
	sent := s.Sent()
	a := Attestation{Job: s.Terms.Job, Checkpoint: next, Updates: make([]string, len(sent))}
	for i, u := range sent {
		a.Updates[i] = u.Commit.UpdateCID
	}
	return a
}

func (l RoundState) units(which func(Unit) bool) []Unit {
	var found []Unit
	for _, u := range l.Units {
		if which(*u) {
			found = append(found, *u)
		}
	}
	return found
}
