package run

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
)

// New begins a run at a height: round 0, waiting for a beacon that deals the units. Only ID, Role, Price,
// Passed, Stake, Owner, Rate and Generates of the members are taken.
func New(t terms.Terms, members []crew.Member, height int64) (State, error) {
	if err := t.Validate(); err != nil {
		return State{}, fmt.Errorf("%w: %w", refusal.ErrTerms, err)
	}
	if len(members) > terms.MaxMembers {
		return State{}, fmt.Errorf("%w: %d members, at most %d", refusal.ErrTerms, len(members), terms.MaxMembers)
	}
	s := State{Progress: progress.Progress{Crew: crew.Crew{Terms: t}, Phase: progress.Assign, Since: height,
		Rules: progress.NewestRules}}
	s.Base = t.Genesis
	for _, m := range members {
		if !seatable(t, m) {
			return State{}, fmt.Errorf("%w: member %q with role %d", refusal.ErrTerms, m.ID, m.Role)
		}
		s.Members = append(s.Members, crew.Member{ID: m.ID, Role: m.Role, Price: m.Price, Passed: m.Passed, Active: true,
			Since: height, Stake: m.Stake, Owner: m.OwnerID(), Rate: m.Rate, Generates: m.Generates})
	}
	slices.SortFunc(s.Members, func(a, b crew.Member) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(s.Members); i++ {
		if s.Members[i-1].ID == s.Members[i].ID {
			return State{}, fmt.Errorf("%w: %s is a member twice", refusal.ErrTerms, s.Members[i].ID)
		}
	}
	if len(crew.Learners(s.Crew)) == 0 {
		return State{}, fmt.Errorf("%w: no worker", refusal.ErrTerms)
	}
	return s, nil
}

// seatable reports whether a member may have its seat: a generator sits where units draw.
func seatable(t terms.Terms, m crew.Member) bool {
	return m.ID != "" && len(m.ID) <= terms.MaxID && (m.Role == crew.Worker || m.Role == crew.Verifier) &&
		(!m.Generates || m.Role == crew.Worker && t.Rollout.Units > 0)
}
