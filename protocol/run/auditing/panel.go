package auditing

import (
	"slices"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// askMore draws verifiers until n audit a unit, or no other is available, and reports whether it drew one. It prefers
// verifiers that are not in late.
func (d *Panels) askMore(l *work.RoundState, i, n int, late ...string) (drew bool) {
	u := d.Unit(l, i)
	for len(u.Looks) < n {
		m, ok := d.audits.drawn(l, *u)
		if !ok {
			m.ID, ok = d.drawOther(l, *u, late)
		}
		if !ok {
			break
		}
		blocks := d.audits.seats.Summon(m)
		u.Looks = append(slices.Clip(u.Looks),
			work.SealedReport{Verifier: m.ID, Since: d.Env.Height, Deadline: d.Due(m.ID, blocks)})
		u.Status, u.Audited, drew = work.Auditing, true, true
		d.Emit(event.Event{Kind: event.AuditDrawn, Round: l.Round, Unit: u.Index, Who: m.ID, Other: u.Worker})
	}
	return drew
}

// drawOther draws another verifier with a seat for a panel, of another owner than every verifier of the panel. It
// shares the owner of the unit's worker only if the panel is empty and no other verifier is available.
func (d *Panels) drawOther(l *work.RoundState, u work.Unit, late []string) (string, bool) {
	taken := map[string]bool{}
	for _, x := range u.Looks {
		m, _ := d.Member(x.Verifier)
		taken[x.Verifier], taken[m.OwnerID()] = true, true
	}
	w, _ := d.Member(u.Worker)
	owner := func(id string) string { m, _ := d.Member(id); return m.OwnerID() }
	pool := slices.DeleteFunc(d.Active(crew.Verifier), func(id string) bool { return taken[id] || taken[owner(id)] })
	others := slices.DeleteFunc(slices.Clone(pool), func(id string) bool { return owner(id) == w.OwnerID() })
	if len(others) > 0 || len(u.Looks) > 0 {
		pool = others
	}
	if rest := slices.DeleteFunc(slices.Clone(pool),
		func(id string) bool { return slices.Contains(late, id) }); len(rest) > 0 {
		pool = rest
	}
	if len(pool) == 0 {
		return "", false
	}
	return pool[d.Pick("verifier", l.Round, u, len(pool))], true
}

// CompletePanels acts when all verifiers of a tolerant unit have sealed: it draws whether more verifiers audit the
// unit, and otherwise asks for the findings.
func (d *Panels) CompletePanels() {
	if d.Env.Beacon.IsZero() {
		return
	}
	for i, u := range d.Units {
		fresh := func(x work.SealedReport) bool { return d.Env.Height <= x.Since }
		if u.Status != work.Auditing || !d.Tolerant(*u) || !u.Bound() || slices.ContainsFunc(u.Looks, fresh) {
			continue
		}
		u = d.Unit(&d.RoundState, i)
		if u.Panel == 0 {
			u.Panel = d.panel(*u)
		}
		if d.askMore(&d.RoundState, i, int(u.Panel)) {
			continue
		}
		u.Status, u.Looks = work.Sealed, slices.Clone(u.Looks)
		for k := range u.Looks {
			x := &u.Looks[k]
			x.Since, x.Deadline = d.Env.Height, d.Due(x.Verifier, transition.OpeningDeadlines*d.AuditDeadline())
		}
	}
}

// panel is the number of verifiers that audit a unit, once the first has sealed its finding.
func (d *Panels) panel(u work.Unit) uint32 {
	outside := slices.ContainsFunc(u.Looks, func(x work.SealedReport) bool { return x.Outside })
	if outside || audit.Draw(d.Env.Beacon, d.Terms.Job+"/second", d.Round, u.Index, u.Attempt, audit.SecondPPM) {
		return audit.Panel
	}
	return 1
}

// Decide settles a unit once all its verifiers have shown their findings.
func (d *Panels) Decide(l *work.RoundState, i int) {
	u := d.Unit(l, i)
	if len(u.Looks) == 0 || slices.ContainsFunc(u.Looks, func(x work.SealedReport) bool { return !x.Shown }) {
		return
	}
	looks := u.Looks
	most := majority(looks)
	u.Looks, u.Panel = nil, 0
	if len(most) == 0 {
		d.undecided(l, i, looks)
		return
	}
	for _, x := range looks {
		if x.Finding != most[0].Finding {
			d.audits.Unanswered(l, i, x.Verifier, reason.Differs)
			d.audits.expel(l, u, x.Verifier, reason.Differs)
		}
	}
	kind := event.AuditPassed
	if most[0].Outside {
		kind = event.AuditOutside
	}
	for _, x := range most {
		d.Emit(event.Event{Kind: kind, Round: l.Round, Unit: u.Index, Who: x.Verifier, Other: u.Worker})
	}
	if most[0].Outside {
		d.outside(i, most, len(most) == len(looks))
		return
	}
	u.Passed, u.End = true, most[0].Finding.End
	d.Change(u.Worker, func(m *crew.Member) { m.Passed++ })
	d.audits.Accept(l, i)
}

// majority returns the reports of a panel that agree, if they are more than half of it.
func majority(looks []work.SealedReport) []work.SealedReport {
	for _, x := range looks {
		same := slices.DeleteFunc(slices.Clone(looks), func(y work.SealedReport) bool { return y.Finding != x.Finding })
		if 2*len(same) > len(looks) {
			return same
		}
	}
	return nil
}

// undecided settles a unit of which no two verifiers found the same and no further verifier is available: the unit
// counts unless most found it outside. Which verifier executed it is unknown, so none is paid and none is excluded.
func (d *Panels) undecided(l *work.RoundState, i int, looks []work.SealedReport) {
	outside := 0
	for _, x := range looks {
		d.audits.Unanswered(l, i, x.Verifier, reason.Contradicted)
		if x.Outside {
			outside++
		}
	}
	if 2*outside > len(looks) {
		d.Unit(l, i).Status = work.Accepted // nothing is left to answer
		d.audits.units.Withhold(i, reason.Outside, nil)
		return
	}
	d.audits.Accept(l, i)
}

// LateReports replaces verifiers that did not report in time. A verifier of several units has missed one deadline.
func (d *Panels) LateReports() {
	late := func(x work.SealedReport) bool { return x.Seal.IsZero() && d.Env.Height > x.Deadline }
	var missed []string
	for i, u := range d.Units {
		if u.Status != work.Auditing || !d.Tolerant(*u) || !slices.ContainsFunc(u.Looks, late) {
			continue
		}
		for _, x := range u.Looks {
			if late(x) && !slices.Contains(missed, x.Verifier) {
				missed = append(missed, x.Verifier)
			}
		}
		d.overlook(&d.RoundState, i, reason.MissedDeadline, late)
	}
	for _, id := range missed {
		d.RecordMiss(id, reason.MissedAudits)
	}
	for i, u := range d.Units {
		if u.Status == work.Auditing && d.Tolerant(*u) && len(u.Looks) == 0 {
			d.auditAgain(i, missed)
		}
	}
}

// overlook removes the reports from a panel for which which is true; they end without an answer.
func (d *Panels) overlook(l *work.RoundState, i int, why string, which func(work.SealedReport) bool) {
	u := d.Unit(l, i)
	for _, x := range u.Looks {
		if which(x) {
			d.Emit(event.Event{Kind: event.AuditMissed, Round: l.Round, Unit: u.Index, Who: x.Verifier, Other: u.Worker,
				Why: d.WhyGone(x.Verifier, why)})
		}
	}
	u.Looks = slices.DeleteFunc(slices.Clone(u.Looks), which)
}

// auditAgain draws a verifier for a unit of the current round that has none.
func (d *Panels) auditAgain(i int, late []string) {
	u := d.Unit(&d.RoundState, i)
	u.Panel = 0
	if d.Halted() {
		return
	}
	if d.Env.Beacon.IsZero() || !d.askMore(&d.RoundState, i, 1, late...) {
		u.Status, u.Audited = work.Committed, true
	}
}

// LateFindings excludes the verifiers that did not show their sealed finding in time. The others decide.
func (d *Panels) LateFindings() {
	late := func(x work.SealedReport) bool { return !x.Shown && d.Env.Height > x.Deadline }
	for i, u := range d.Units {
		if u.Status != work.Sealed || !d.Tolerant(*u) || !slices.ContainsFunc(u.Looks, late) {
			continue
		}
		looks := u.Looks
		d.overlook(&d.RoundState, i, reason.SealUnopened, late)
		u = d.Unit(&d.RoundState, i)
		for _, x := range looks {
			if m, _ := d.Member(x.Verifier); late(x) && !crew.Unbelieved(m) {
				d.audits.expel(&d.RoundState, u, x.Verifier, reason.SealUnopened)
			}
		}
		if len(u.Looks) == 0 {
			d.auditAgain(i, nil)
		}
		d.Decide(&d.RoundState, i)
	}
}

// ReleaseReports replaces verifiers that left, and those whose reports no longer count. Verifiers that have sealed a
// finding still owe it.
func (d *Panels) ReleaseReports(out map[string]bool) {
	for i, u := range d.Units {
		if u.Status != work.Auditing && u.Status != work.Sealed || !d.Tolerant(*u) {
			continue
		}
		void := func(x work.SealedReport) bool {
			m, _ := d.Member(x.Verifier)
			return out[x.Verifier] && !x.Shown && (x.Seal.IsZero() || crew.Unbelieved(m))
		}
		if !slices.ContainsFunc(u.Looks, void) {
			continue
		}
		d.overlook(&d.RoundState, i, reason.VerifierLeft, void)
		if len(d.Units[i].Looks) == 0 {
			d.auditAgain(i, nil)
		}
		if d.Units[i].Status == work.Sealed {
			d.Decide(&d.RoundState, i)
		}
	}
}
