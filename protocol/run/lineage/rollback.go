package lineage

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// Convict excludes a worker. The run returns to the round of its unit: its units there are done again by other workers,
// and its units in earlier rounds that are not final are audited.
func (d *Rollbacks) Convict(l *work.RoundState, i int, silent bool) {
	u := *l.Units[i]
	why, verdict := reason.WrongWork, reason.Verdict
	if silent {
		why, verdict = reason.Silent, reason.Silent
	}
	d.Emit(
		event.Event{
			Kind:  event.DisputeEnded,
			Round: l.Round,
			Unit:  u.Index,
			Who:   u.Challengers[0],
			Other: u.Worker,
			Why:   why,
		},
	)
	d.Unit(l, i).Challengers = u.Challengers[1:]
	d.Leave(u.Worker, reason.Verdict)
	d.Change(u.Worker, func(m *crew.Member) { m.Passed, m.Why = 0, reason.Verdict })
	void := d.IsVoid(l) // nothing is built on it
	d.seats.CancelProbations(
		func(e progress.ProbationTask) bool { return e.Worker == u.Worker || !void && e.Round > l.Round },
	)
	if void {
		for _, l := range d.EditRounds() {
			d.audits.Suspect(l, u.Worker)
		}
	} else {
		if l.Round != d.Round {
			d.Rollback(l.Round, u, u.Worker)
		}
		d.reassignConvicted(i, u.Worker, verdict)
		for k := range d.Open {
			d.audits.Suspect(&d.Open[k], u.Worker)
		}
	}
	d.forfeit()
}

// reassignConvicted takes its committed units of the current round from a convicted worker; wrong is the one of the
// verdict.
func (d *Rollbacks) reassignConvicted(wrong int, worker, verdict string) {
	for j, v := range d.Units {
		why := reason.Convicted
		if j == wrong {
			why = verdict
		}
		if v.Worker == worker && v.Status != work.Assigned {
			d.audits.CancelDisputes(&d.RoundState, j, reason.Convicted)
			d.units.Reassign(&d.RoundState, j, why)
		}
	}
}

// Rollback makes an attested round the current one again. The commitments in it stay; all rounds after it are void,
// with the convicted members as their culprits.
func (d *Rollbacks) Rollback(round uint32, u work.Unit, culprits ...string) {
	at := slices.IndexFunc(d.Open, func(l work.RoundState) bool { return l.Round == round })
	d.Emit(event.Event{Kind: event.RolledBack, Round: round, Unit: u.Index, Who: u.Worker})
	dropped := d.EditRounds()[at+1:]
	for _, l := range dropped {
		for _, v := range l.Units {
			d.FirstAttempt = max(d.FirstAttempt, v.LastAttempt()+1)
		}
		d.markRolledBack(*l, culprits)
	}
	d.RoundState, d.Open = d.Open[at], d.Open[:at]
	d.Reopen()
}

func (d *Rollbacks) Acquit(l *work.RoundState, i int) {
	u := d.Unit(l, i)
	loser := u.Challengers[0]
	d.Emit(
		event.Event{
			Kind:  event.DisputeEnded,
			Round: l.Round,
			Unit:  u.Index,
			Who:   loser,
			Other: u.Worker,
			Why:   reason.FalseChallenge,
		},
	)
	d.Leave(loser, reason.FalseChallenge)
	d.Change(loser, func(m *crew.Member) { m.Why = reason.FalseChallenge })
	if u.Challengers = u.Challengers[1:]; len(u.Challengers) > 0 {
		return
	}
	u.Challengers = nil
	if u.Audited && !u.Passed && d.audits.Lookers() > 0 {
		d.audits.Audit(l, i) // the verdict has looked at one place of it only
		return
	}
	d.audits.Accept(l, i)
}

// ended reports whether the current round waits for nothing but the attestation of the checkpoint after it.
func (d *Lineage) ended() bool {
	_, diverged := d.Diverged()
	return d.Phase == progress.Attest && !diverged
}

// Unavailable takes the run back to the round before when most members cannot fetch an update of it that the next
// checkpoint is made of, and gives such units to other workers, as withheld does in the current round.
func (d *Rollbacks) Unavailable() {
	if d.Halted() || !d.Terms.Overlap || d.Round == 0 || !slices.Contains(d.Terms.Applied(d.Round), d.Round-1) {
		return
	}
	before, ok := d.At(d.Round - 1)
	if !ok {
		return
	}
	lacks := func(u *work.Unit) bool { return u.Status == work.Accepted && d.MostSay(u.Worker, u.Missing) }
	first := slices.IndexFunc(before.Units, lacks)
	if first < 0 {
		return
	}
	d.seats.CancelProbations(func(e progress.ProbationTask) bool { return e.Round > before.Round })
	d.Rollback(before.Round, *before.Units[first])
	for i := range d.Units {
		if lacks(d.Units[i]) {
			d.units.Withheld(i)
		}
	}
}

// RestoreOutvoted makes members active again that were excluded for not signing the checkpoint after a round, which is
// refuted.
func (d *Rollbacks) RestoreOutvoted(l work.RoundState) {
	for i := range d.Members {
		m := &d.Members[i]
		refuted := slices.ContainsFunc(d.Events,
			func(e event.Event) bool { return e.Kind == event.CheckpointRefuted && e.Who == m.ID })
		if !m.Active && m.Why == reason.WrongAttest && m.Since == l.Attested && !refuted {
			m.Active, m.Why, m.Since = true, "", d.Env.Height
			d.Emit(event.Event{Kind: event.MemberRestored, Round: d.Round, Who: m.ID})
		}
	}
}
