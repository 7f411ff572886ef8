package auditing

import (
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Ask draws where the seals of earlier blocks must be opened.
func (d *Audits) Ask() {
	if d.Env.Beacon.IsZero() {
		return
	}
	for _, l := range d.EditAll() {
		for i, u := range l.Units {
			if u.Status == work.Sealed && u.Question.IsZero() && d.Env.Height > u.AssignedAt && !d.Tolerant(*u) {
				u = d.Unit(l, i)
				u.Question = audit.Question(d.Env.Beacon, d.Subject(l.Round, *u))
				u.AssignedAt, u.Deadline = d.Env.Height, d.Due(u.Verifier, transition.OpeningDeadlines*d.AuditDeadline())
			}
		}
	}
}

// LateOpenings excludes the verifiers that did not open a seal in time: they did not compute the state that they
// sealed. Their other seals are void.
func (d *Audits) LateOpenings() {
	for _, l := range d.EditAll() {
		for i, u := range l.Units {
			if u.Status == work.Sealed && !u.Question.IsZero() && d.Env.Height > u.Deadline {
				if m, _ := d.Member(u.Verifier); !crew.Unbelieved(m) {
					d.broken(l, i, reason.SealUnopened)
					d.Audit(l, i)
				}
			}
		}
	}
}

// broken voids the audit of a unit. Its verifier takes no further part.
func (d *Audits) broken(l *work.RoundState, i int, why string) {
	u := d.Unit(l, i)
	u.Passed = false
	if u.Status == work.Sealed {
		d.Unanswered(l, i, u.Verifier, why)
	}
	d.expel(l, u, u.Verifier, why)
}

// expel excludes a verifier that passed a unit without executing it. It takes no further part.
func (d *Audits) expel(l *work.RoundState, u *work.Unit, verifier, why string) {
	d.Emit(event.Event{Kind: event.AuditBroken, Round: l.Round, Unit: u.Index, Who: verifier, Other: u.Worker, Why: why})
	d.Leave(verifier, why)
	d.Change(verifier, func(m *crew.Member) { m.Why = why })
}
