package seating

import (
	"cmp"
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Summon makes a verifier without a seat a guest. It returns how many blocks the verifier has for its answer.
func (d *Seats) Summon(m crew.Member) int64 {
	blocks := d.AuditDeadline()
	if !d.IsActive(m.ID) {
		d.Welcome(m)
		if g, _ := d.Member(m.ID); g.Speed == 0 {
			blocks *= crew.Novice
		}
	}
	return blocks
}

// Welcome makes an account a guest: a new one, or a verifier that left the run in good standing.
func (d *Seats) Welcome(m crew.Member) {
	i, known := d.Index(m.ID)
	if known && d.Members[i].IsGuest() {
		return
	}
	if !known {
		d.forget()
		i, _ = d.Index(m.ID)
		d.Members = slices.Insert(d.Members, i,
			crew.Member{ID: m.ID, Role: crew.Verifier, Price: m.Price, Stake: m.Stake, Owner: m.OwnerID()})
	}
	e := &d.Members[i]
	e.Active, e.Why, e.Since = false, reason.Guest, d.Env.Height
}

// forget drops guests with nothing open and verifiers that declined, the earliest first, while there are too many.
func (d *Seats) forget() {
	var guests []crew.Member
	for _, m := range d.Members {
		if m.IsGuest() || m.Why == reason.Unopened && m.Role == crew.Verifier {
			guests = append(guests, m)
		}
	}
	slices.SortStableFunc(guests, func(a, b crew.Member) int { return cmp.Compare(a.Since, b.Since) })
	over := max(len(guests)-crew.MaxGuests, len(d.Members)-terms.MaxMembers) + 1
	for _, g := range guests {
		if over <= 0 {
			return
		}
		if !d.Liable(g.ID) {
			d.Members = slices.DeleteFunc(d.Members, func(m crew.Member) bool { return m.ID == g.ID })
			over--
		}
	}
}
