package run

import (
	"cmp"
	"fmt"
	"slices"
)

// New begins a run at a height: round 0, waiting for a beacon that deals the units. Only ID, Role, Price,
// Passed, Stake and Owner of the members are taken.
func New(t Terms, members []Member, height int64) (State, error) {
	if err := t.Validate(); err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrTerms, err)
	}
	if len(members) > MaxMembers {
		return State{}, fmt.Errorf("%w: %d members, at most %d", ErrTerms, len(members), MaxMembers)
	}
	s := State{Progress: Progress{Crew: Crew{Terms: t}, Phase: Assign, Since: height}}
	s.Base = t.Genesis
	for _, m := range members {
		if m.ID == "" || len(m.ID) > MaxID || (m.Role != Worker && m.Role != Verifier) {
			return State{}, fmt.Errorf("%w: member %q with role %d", ErrTerms, m.ID, m.Role)
		}
		s.Members = append(s.Members, Member{ID: m.ID, Role: m.Role, Price: m.Price, Passed: m.Passed, Active: true,
			Since: height, Stake: m.Stake, Owner: m.owner()})
	}
	slices.SortFunc(s.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(s.Members); i++ {
		if s.Members[i-1].ID == s.Members[i].ID {
			return State{}, fmt.Errorf("%w: %s is a member twice", ErrTerms, s.Members[i].ID)
		}
	}
	if len(s.Active(Worker)) == 0 {
		return State{}, fmt.Errorf("%w: no worker", ErrTerms)
	}
	return s, nil
}
