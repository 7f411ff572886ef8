package market

import (
	"cmp"
	"slices"

	"github.com/starling-network/starling/protocol/run"
)

// Join finds who takes the free places of a run that goes on: up to the order's most workers, and as many verifiers as it
// asked for, counting those on trial. Who is back comes first, at its old price, then the lots of the book, as in Match.
// Nobody joins at a price at which what remains of the budget would not cover the next round.
func (b *Book) Join(o Order, s run.State, back []run.Member, remaining uint64) []run.Member {
	var chosen []run.Member
	for _, role := range []run.Role{run.Worker, run.Verifier} {
		places := map[run.Role]uint32{run.Worker: o.Workers.Max, run.Verifier: o.Verifiers}[role]
		if role == run.Worker && s.Phase == run.Settle { // there is nothing left to train
			places = 0
		}
		places -= min(places, s.Present(role))
		waiting := slices.DeleteFunc(slices.Clone(back), func(m run.Member) bool { return m.Role != role })
		var lots *stream
		for places > 0 {
			var m run.Member
			if len(waiting) > 0 {
				m, waiting = waiting[0], waiting[1:]
			} else {
				if lots == nil {
					lots = b.walk(b.wish(&o), role, o.PriceCap)
				}
				l := lots.next()
				if l == nil {
					break
				}
				m = run.Member{ID: l.ID, Role: l.Role, Price: l.Price}
			}
			if m.Price > o.PriceCap || !s.MayJoin(m.ID, m.Role) {
				continue
			}
			with := joined(s, m)
			if Exposure(with) > remaining {
				continue
			}
			s, chosen = with, append(chosen, m)
			places--
		}
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
