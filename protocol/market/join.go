package market

import (
	"cmp"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run"
)

// Join finds who takes the free places of a run that goes on: up to the order's most workers, and as many verifiers as it
// asked for, counting those on trial. Who is back comes first, at its old price, then the open offers, ranked and capped as
// in Match. Nobody joins at a price at which what remains of the budget would not cover the next round.
func Join(o Order, s run.State, back []run.Member, offers []Offer, remaining uint64, beacon canon.Digest) []run.Member {
	places := map[run.Role]uint32{run.Worker: o.Workers.Max, run.Verifier: o.Verifiers}
	if s.Phase == run.Settle { // there is nothing left to train
		places[run.Worker] = 0
	}
	for r := range places {
		places[r] -= min(places[r], s.Present(r))
	}
	candidates := slices.Clone(back)
	for _, f := range rank(o.ID, offers, beacon) {
		candidates = append(candidates, run.Member{ID: f.ID, Role: f.Role, Price: f.Price})
	}
	var chosen []run.Member
	for _, m := range candidates {
		if places[m.Role] == 0 || m.Price > o.PriceCap || !s.MayJoin(m.ID, m.Role) {
			continue
		}
		with := joined(s, m)
		if Exposure(with) > remaining {
			continue
		}
		s, chosen = with, append(chosen, m)
		places[m.Role]--
	}
	slices.SortFunc(chosen, func(a, b run.Member) int { return cmp.Compare(a.ID, b.ID) })
	return chosen
}

// joined is the state of a run in which a member counts, for what that costs.
func joined(s run.State, m run.Member) run.State {
	m.Active = true
	i, known := slices.BinarySearchFunc(s.Members, m.ID, func(m run.Member, id string) int { return cmp.Compare(m.ID, id) })
	s.Members = slices.Clone(s.Members)
	if known {
		s.Members[i] = m
	} else {
		s.Members = slices.Insert(s.Members, i, m)
	}
	return s
}
