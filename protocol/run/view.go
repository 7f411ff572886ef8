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

// Quorum is the smallest number of members that is more than two thirds of the active ones.
func (s State) Quorum() int { return s.actives()*2/3 + 1 }

func (s State) actives() int {
	n := 0
	for _, m := range s.Members {
		if m.Active {
			n++
		}
	}
	return n
}

// Work lists the units that a worker has to commit now, in order of index. It may do them in any order, and owes one
// commitment per deadline.
func (s State) Work(worker string) []Unit {
	return s.units(func(u Unit) bool { return u.Status == Assigned && u.Worker == worker })
}

// Audits lists the units that a verifier has to audit now, in order of index. It owes one answer per deadline.
func (s State) Audits(verifier string) []Unit {
	return s.units(func(u Unit) bool { return u.Status == Auditing && u.Verifier == verifier })
}

// Voted reports whether a member has attested the current round.
func (s State) Voted(id string) bool {
	return slices.ContainsFunc(s.Votes, func(v Vote) bool { return v.Member == id })
}

// Attestation is what a member signs who finds the checkpoint (root, cid) after the current round. It is defined in
// Attest, when every unit is accepted.
func (s State) Attestation(next Checkpoint) Attestation {
	a := Attestation{Job: s.Terms.Job, Checkpoint: next, Updates: make([]string, len(s.Units))}
	for i, u := range s.Units {
		a.Updates[i] = u.Commit.UpdateCID
	}
	return a
}

func (s State) units(which func(Unit) bool) []Unit {
	var found []Unit
	for _, u := range s.Units {
		if which(u) {
			found = append(found, u)
		}
	}
	return found
}
