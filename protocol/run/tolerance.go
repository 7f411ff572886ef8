package run

import (
	"slices"

	"github.com/starling-network/starling/canon"
)

// Tolerant reports whether an attempt at a unit is held against the tolerance, and not settled by its state roots.
func (p Progress) Tolerant(u Unit) bool { return p.Terms.Tolerance.DistancePPM > 0 && !u.Exact }

// Attestable reports whether the checkpoint after the current round can be attested: every unit that it is made of is
// committed, to an update, and, in a tolerant run, nothing is open about any.
func (p Progress) Attestable() bool {
	open := func(u *Unit) bool { return u.Status != Accepted }
	return p.Combines() && (p.Terms.Tolerance.DistancePPM == 0 || !slices.ContainsFunc(p.Units, open))
}

// Held is a deposit that waits for the exact execution of its unit: all who looked, of different owners, found the
// same, and that it is outside.
type Held struct {
	Worker    string       `cbor:"1,keyasint"`
	End       canon.Digest `cbor:"2,keyasint"` // of the unit, as they found it
	Verifiers []string     `cbor:"3,keyasint"`
}

// outside withholds a unit that most of a panel found outside. If there were several, and all of them, the deposit of
// its worker is held.
func (d *panels) outside(i int, most []SealedReport, all bool) {
	u := d.unit(&d.RoundState, i)
	u.Status = Accepted // nothing is left to answer
	var held *Held
	if all && len(most) > 1 {
		held = &Held{Worker: u.Worker, End: most[0].Finding.End}
		for _, x := range most {
			held.Verifiers = append(held.Verifiers, x.Verifier)
		}
	}
	d.audits.units.withhold(i, WhyOutside, held)
}

// withhold takes a unit of the current round from a worker, without proof and without a conviction. The next attempt at
// it is exact. With its deposit held the worker is out of the run.
func (d *assignment) withhold(i int, why string, held *Held) {
	worker := d.Units[i].Worker
	d.audits.cancelDisputes(&d.RoundState, i, why)
	d.change(worker, func(m *Member) { m.Passed = 0 })
	if held == nil {
		d.recordMiss(worker, WhyWithheld)
	} else {
		d.unit(&d.RoundState, i).Held = held
	}
	d.reassign(i, why)
	if held != nil {
		d.distrust(worker)
	}
}

// distrust lets a worker go whose deposit is held or forfeited. All that it did in the round is done again exactly, and
// not paid: who fakes many units at once loses all of them with the first that is found.
func (d *assignment) distrust(worker string) {
	if slices.ContainsFunc(d.Active(Worker), func(id string) bool { return id != worker }) {
		d.leave(worker, WhyWithheld)
	}
	for i, u := range d.Units {
		if u.Worker == worker && u.Status != Assigned && d.Tolerant(*u) {
			d.audits.cancelDisputes(&d.RoundState, i, WhyDistrusted)
			d.reassign(i, WhyDistrusted)
		}
	}
}

// deposits settles the deposits that are held over units of a final round. The exact execution of each is one that
// anybody could dispute: who reported another end of it has not executed the unit, which is proof, and the deposit is
// the worker's.
func (d *panels) deposits(l RoundState) {
	for _, u := range l.Units {
		if u.Held == nil {
			continue
		}
		if roots := u.Commit.Segments; roots[len(roots)-1] == u.Held.End {
			d.emit(Event{Kind: DepositForfeited, Round: l.Round, Unit: u.Index, Who: u.Held.Worker, Why: WhyOutside})
			continue
		}
		for _, id := range u.Held.Verifiers {
			d.audits.expel(&l, u, id, WhyFalseReport)
		}
		d.emit(Event{Kind: DepositReturned, Round: l.Round, Unit: u.Index, Who: u.Held.Worker, Why: WhyFalseReport})
	}
}

// returned gives deposits back that nothing will settle: the exact execution is void, or the run ends before it counts.
func (d *draft) returned(l RoundState, why string) {
	for _, u := range l.Units {
		if u.Held != nil {
			d.emit(Event{Kind: DepositReturned, Round: l.Round, Unit: u.Index, Who: u.Held.Worker, Why: why})
		}
	}
}
