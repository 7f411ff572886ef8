package market

import (
	"cmp"
	"slices"

	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Join finds members for the free places of a run in progress: up to the maximum of workers of the order, and the
// number of verifiers that it asked for, counting members on probation. Returning members come first, at their old
// price, then lots of the book are drawn, as in Match. They are paid the price of their role in the run, or the
// highest price that one of the new members asks if that is more. None joins at a price at which the rest of the
// budget would not cover the next round. Last, a worker that earns its stake is drawn, if one may join.
func (b *OrderBook) Join(o Order, s run.State, back []crew.Member, remaining uint64) []crew.Member {
	var chosen []crew.Member
	taken := ownersOf(s.Members, func(m crew.Member) bool { return m.Active || m.Why == reason.OnProbation })
	for _, role := range []crew.Role{crew.Generator, crew.Worker, crew.Verifier} {
		places := o.free(s, role)
		for _, m := range back {
			l := &lot{Listing: Listing{Offer: Offer{ID: m.ID, Role: m.Class(), Price: m.Price},
				Profile: Profile{Owner: cmp.Or(m.Owner, m.ID)}}}
			free := places > 0
			if m.Earning {
				free = o.EarnerMayJoin(s)
			}
			if !free || m.Class() != role || m.Price > o.PriceCap || !s.MayJoin(m.ID, m.Role) || !taken.apart(l) {
				continue
			}
			if with := joined(s, m); cost.Exposure(with) <= remaining {
				s, chosen = with, append(chosen, m)
				if taken.add(l.Owner, role); !m.Earning {
					places--
				}
			}
		}
		if places > 0 {
			var members []crew.Member
			s, members = b.newcomers(o, s, role, int(places), taken, remaining)
			chosen = append(chosen, members...)
		}
	}
	chosen = append(chosen, b.earners(o, s, taken, remaining)...)
	slices.SortFunc(chosen, func(a, b crew.Member) int { return cmp.Compare(a.ID, b.ID) })
	return chosen
}

// free is how many members of a class of work may join a run.
func (o *Order) free(s run.State, class crew.Role) uint32 {
	if class == crew.Verifier {
		return o.Verifiers - min(o.Verifiers, s.Present(class))
	}
	if s.Phase == progress.Settle { // there is nothing left to train
		return 0
	}
	places := o.Workers.Max - min(o.Workers.Max, s.Present(crew.Worker))
	if class == crew.Generator {
		return min(places, o.Generators-min(o.Generators, s.Present(class)))
	}
	return places
}

// EarnerMayJoin reports whether a worker that earns its stake may join a run, in addition to the workers that the order
// takes: one at a time, and after none that may still be convicted there. So a run is rolled back at most once by a
// worker that has nothing to lose. None joins after one of them was convicted, where work is not audited, or not exact,
// so that nothing would be proven, in the last rounds, and for an order in another coin than the stake.
func (o *Order) EarnerMayJoin(s run.State) bool {
	t := s.Terms
	return o.Coin.Own() && t.AuditPPM > 0 && t.Tolerance.DistancePPM == 0 && s.Phase != progress.Settle &&
		!slices.ContainsFunc(s.Members, func(m crew.Member) bool {
			return m.Earning && (m.Why == reason.Verdict || m.Participating() || s.Liable(m.ID))
		})
}

// earners draws a worker that earns its stake, at the price of the workers of the run or below.
func (b *OrderBook) earners(o Order, s run.State, taken owners, remaining uint64) []crew.Member {
	if !o.EarnerMayJoin(s) {
		return nil
	}
	o.PriceCap, _ = cost.Highest(s)
	w := b.wish(&o)
	w.earning = true
	_, members := b.drawn(w, s, crew.Worker, 1, taken, remaining)
	return members
}

// newcomers draws members for free places of a role, and returns the run with them.
func (b *OrderBook) newcomers(o Order, s run.State, role crew.Role, places int, taken owners,
	remaining uint64) (run.State, []crew.Member) {
	return b.drawn(b.wish(&o), s, role, places, taken, remaining)
}

// drawn is newcomers for a wish.
func (b *OrderBook) drawn(w *wish, s run.State, role crew.Role, places int, taken owners,
	remaining uint64) (run.State, []crew.Member) {
	o := w.order
	u := b.urn(w, role, o.PriceCap)
	paid := cost.Dearest(s, role)
	pays := payable{run: s, role: role, remaining: remaining, most: o.PriceCap}
	room := terms.MaxMembers - len(s.Members)
	var lots []*lot
	for _, rule := range []func(*lot) bool{taken.alone, taken.apart} {
		u.draw(places-len(lots), func(l *lot) bool {
			_, known := s.Member(l.ID)
			return rule(l) && s.MayJoin(l.ID, l.Role.Registered()) && (known || room > 0) && pays.at(max(paid, l.Price))
		}, func(l *lot) {
			lots = append(lots, l)
			taken.add(l.Owner, role)
			if _, known := s.Member(l.ID); !known {
				room--
			}
		})
	}
	members := w.price(lots, paid)
	for i, m := range members {
		s = joined(s, m)
		members[i].Active = false // until it has passed its probation
	}
	return s, members
}

// payable tells at which prices of a role a budget covers the cost of a run. It computes the cost only at prices whose
// answer does not follow from earlier ones.
type payable struct {
	run       run.State
	role      crew.Role
	remaining uint64
	known     bool
	least     uint64 // the highest price at which it does
	most      uint64 // no price above it does
}

func (p *payable) at(price uint64) bool {
	switch {
	case p.known && price <= p.least:
		return true
	case price > p.most:
		return false
	}
	if cost.Exposure(joined(p.run, crew.Member{ID: "\x00", Role: p.role.Registered(),
		Generates: p.role == crew.Generator, Price: price})) > p.remaining {
		p.most = max(price, 1) - 1
		return false
	}
	p.known, p.least = true, price
	return true
}

// joined is the state of a run in which a member counts, for what that costs.
func joined(s run.State, m crew.Member) run.State {
	m.Active = true
	i, known := slices.BinarySearchFunc(s.Members, m.ID,
		func(m crew.Member, id string) int { return cmp.Compare(m.ID, id) })
	s.Members = slices.Clone(s.Members)
	if known {
		s.Members[i] = m
	} else {
		s.Members = slices.Insert(s.Members, i, m)
	}
	return s
}
