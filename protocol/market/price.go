package market

import (
	"slices"
	"sort"

	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run/crew"
)

// price gives members of a class of work their price: the highest price that one of them asks, or that it has already.
// The price of a member is bounded by the order's cap for an hour of its machine, and by the work that its stake
// covers.
func (w *wish) price(lots []*lot, already uint64) (members []crew.Member) {
	marginal := already
	for _, l := range lots {
		marginal = max(marginal, l.Price)
	}
	for _, l := range lots {
		members = append(members, crew.Member{
			ID: l.ID, Role: l.Role.Registered(), Price: max(l.Price, min(marginal, w.ceiling(l, marginal))), Active: true,
			Stake: l.Stake, Owner: l.Owner, Earning: l.Earning, Rate: l.Rate, Generates: l.Role == crew.Generator,
		})
	}
	return members
}

// ceiling is the highest price, up to a bound, at which a lot still fits.
func (w *wish) ceiling(l *lot, bound uint64) uint64 {
	if hourly := w.order.Conditions.Hourly; hourly > 0 && l.Role != crew.Verifier {
		bound = min(bound, cost.Within(hourly, l.Rate))
	}
	if bound <= l.Price || w.order.Value(l.Role, bound) <= l.Cover {
		return bound
	}
	n := int(min(bound-l.Price, 1<<62)) // the first price above the lot's that its stake does not cover
	return l.Price + uint64(sort.Search(n,
		func(i int) bool { return w.order.Value(l.Role, l.Price+uint64(i)+1) > l.Cover }))
}

// owners are the accounts that members of a role work for.
type owners map[string]map[crew.Role]bool

func (o owners) add(owner string, r crew.Role) {
	if o[owner] == nil {
		o[owner] = map[crew.Role]bool{}
	}
	o[owner][r] = true
}

// alone reports whether a lot is of an owner that has no seat.
func (o owners) alone(l *lot) bool { return len(o[l.Owner]) == 0 }

// apart reports whether a lot may have a seat in addition to those of its owner: workers of one owner may sit
// together, and no verifier sits where its owner has another seat.
func (o owners) apart(l *lot) bool {
	return o.alone(l) || l.Role != crew.Verifier && !o[l.Owner][crew.Verifier]
}

// ownersOf are the owners of the members of a run that take part.
func ownersOf(members []crew.Member, present func(crew.Member) bool) owners {
	o := owners{}
	for _, m := range slices.Clone(members) {
		if present(m) {
			owner := m.Owner
			if owner == "" {
				owner = m.ID
			}
			o.add(owner, m.Role)
		}
	}
	return o
}
