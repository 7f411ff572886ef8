package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
)

// The audit of a tolerant unit is a panel: one verifier, which executes the unit and is bound to what it finds by a
// seal. A later beacon draws whether that is compared with what others find; where the first says that the update is
// outside it always is. So others are drawn who execute the unit, too, and are bound, before anybody shows anything:
// nobody can copy, and two who have executed the unit have found the same. Who differs from the most of a panel is out
// of the run, and not paid.

// SealedReport is what one verifier says of a tolerant unit.
type SealedReport struct {
	Verifier string `cbor:"1,keyasint"`
	// height from which it could be at what it owes, or since which it is bound
	Since    int64         `cbor:"2,keyasint"`
	Deadline int64         `cbor:"3,keyasint"`           // height by which its seal is due, or what is in it
	Seal     canon.Digest  `cbor:"4,keyasint"`           // of its finding; zero until it is bound
	Outside  bool          `cbor:"5,keyasint,omitempty"` // it finds the update outside the tolerance
	Shown    bool          `cbor:"6,keyasint,omitempty"`
	Finding  audit.Finding `cbor:"7,keyasint"` // once it is shown
}

// look returns the place of a verifier among those who look at a unit.
func (u Unit) look(verifier string) int {
	return slices.IndexFunc(u.Looks, func(x SealedReport) bool { return x.Verifier == verifier })
}

// bound reports whether all who look at a unit are bound to what they found.
func (u Unit) bound() bool {
	return len(u.Looks) > 0 && !slices.ContainsFunc(u.Looks, func(x SealedReport) bool { return x.Seal.IsZero() })
}

// OwesReport reports whether a verifier has still to say what it finds of a tolerant unit.
func (u Unit) OwesReport(verifier string) bool {
	k := u.look(verifier)
	return k >= 0 && u.Status == Auditing && u.Looks[k].Seal.IsZero()
}

// OwesFigures reports whether a verifier has to show what it is bound to.
func (u Unit) OwesFigures(verifier string) bool {
	k := u.look(verifier)
	return k >= 0 && u.Status == Sealed && !u.Looks[k].Shown
}

// ProvesReportFalse reports whether a verifier would have reported falsely, and has to challenge an exact attempt: its
// last state is another than the verifier found, so that the deposit over the attempt before is held for nothing.
func (u Unit) ProvesReportFalse(verifier string) bool {
	roots := u.Commit.Segments
	return u.Held != nil && u.Status != Assigned && len(roots) > 0 && roots[len(roots)-1] != u.Held.End &&
		slices.Contains(u.Held.Verifiers, verifier)
}

// LookSubject is the audit that the seal of a look answers.
func (p Progress) LookSubject(verifier string, id UnitID) audit.Subject {
	return audit.Subject{Verifier: verifier, Job: p.Terms.Job, Round: id.Round, Unit: id.Unit, Attempt: id.Attempt}
}

// looked finds the look of a verifier at an attempt at a unit.
func looked(s State, from string, id UnitID) (Unit, int, error) {
	if s.over() {
		return Unit{}, 0, fmt.Errorf("%w: %s", ErrHalted, s.Terms.Job)
	}
	u, err := find(s, id)
	if err != nil {
		return u, 0, err
	}
	k := u.look(from)
	switch {
	case !s.Tolerant(u):
		return u, k, fmt.Errorf("%w: unit %d is settled by its state roots", ErrWrongPhase, id.Unit)
	case k < 0:
		return u, k, fmt.Errorf("%w: unit %d is not audited by %s", ErrNotYours, id.Unit, from)
	}
	return u, k, nil
}

// Report binds a verifier to what it finds of a tolerant unit: seal is that of an audit.Finding. It says of it only
// whether it is outside the tolerance, which decides how many look.
func (s State) Report(env Env, from string, id UnitID, seal canon.Digest, outside bool) (State, []Event, error) {
	u, k, err := looked(s, from, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Status != Auditing:
		return s, nil, fmt.Errorf("%w: no audit of unit %d is open", ErrWrongPhase, id.Unit)
	case !u.Looks[k].Seal.IsZero():
		return s, nil, fmt.Errorf("%w: %s has reported unit %d", ErrDuplicate, from, id.Unit)
	case seal.IsZero():
		return s, nil, fmt.Errorf("%w: no seal", ErrBadOpening)
	}
	d := s.edit(env)
	d.responded(from, u, u.Looks[k].Since)
	v := d.unit(d.lap(id.Round), int(id.Unit))
	v.Looks = slices.Clone(v.Looks)
	v.Looks[k].Seal, v.Looks[k].Outside, v.Looks[k].Since = seal, outside, env.Height
	d.emit(Event{Kind: AuditSealed, Round: id.Round, Unit: id.Unit, Who: from, Other: u.Worker})
	after, events := d.finish()
	return after, events, nil
}

// ShowReport shows what a report is bound to. When all who looked have, the panel decides. Also who takes no further
// part in the run owes it.
func (s State) ShowReport(env Env, from string, id UnitID, f audit.Finding, salt canon.Digest) (State, []Event, error) {
	u, k, err := looked(s, from, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Status != Sealed:
		return s, nil, fmt.Errorf("%w: not all who look at unit %d are bound", ErrWrongPhase, id.Unit)
	case u.Looks[k].Shown:
		return s, nil, fmt.Errorf("%w: %s has shown its report of unit %d", ErrDuplicate, from, id.Unit)
	case f.Seal(s.LookSubject(from, id), salt) != u.Looks[k].Seal:
		return s, nil, fmt.Errorf("%w: this is not what was sealed of unit %d", ErrBadOpening, id.Unit)
	case s.Terms.Tolerance.Holds(f.DistancePPM, f.CosinePPM) == u.Looks[k].Outside:
		return s, nil, fmt.Errorf("%w: this is not what was said of unit %d", ErrBadOpening, id.Unit)
	}
	d := s.edit(env)
	l := d.lap(id.Round)
	v := d.unit(l, int(id.Unit))
	v.Looks = slices.Clone(v.Looks)
	v.Looks[k].Shown, v.Looks[k].Finding = true, f
	d.decide(l, int(id.Unit))
	after, events := d.finish()
	return after, events, nil
}

// look draws verifiers until n look at a unit, or nobody else is there, and reports whether it drew one. Of who was
// late others are preferred.
func (d *panels) look(l *RoundState, i, n int, late ...string) (drew bool) {
	u := d.unit(l, i)
	for len(u.Looks) < n {
		m, ok := d.audits.drawn(l, *u)
		if !ok {
			m.ID, ok = d.beside(l, *u, late)
		}
		if !ok {
			break
		}
		blocks := d.audits.seats.summon(m)
		u.Looks = append(
			slices.Clip(u.Looks),
			SealedReport{Verifier: m.ID, Since: d.env.Height, Deadline: d.due(m.ID, blocks)},
		)
		u.Status, u.Audited, drew = Auditing, true, true
		d.emit(Event{Kind: AuditDrawn, Round: l.Round, Unit: u.Index, Who: m.ID, Other: u.Worker})
	}
	return drew
}

// beside draws one of those who have a seat: of another owner than all who look at the unit. It works for the worker of
// the unit only if nobody else is there to look at it first.
func (d *panels) beside(l *RoundState, u Unit, late []string) (string, bool) {
	taken := map[string]bool{}
	for _, x := range u.Looks {
		m, _ := d.Member(x.Verifier)
		taken[x.Verifier], taken[m.owner()] = true, true
	}
	w, _ := d.Member(u.Worker)
	owner := func(id string) string { m, _ := d.Member(id); return m.owner() }
	pool := slices.DeleteFunc(d.Active(Verifier), func(id string) bool { return taken[id] || taken[owner(id)] })
	others := slices.DeleteFunc(slices.Clone(pool), func(id string) bool { return owner(id) == w.owner() })
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
	return pool[d.pick("verifier", l.Round, u, len(pool))], true
}

// completePanels draws, when all who look at a tolerant unit are bound, whether more shall, and else asks for what they
// found.
func (d *panels) completePanels() {
	if d.env.Beacon.IsZero() {
		return
	}
	for i, u := range d.Units {
		fresh := func(x SealedReport) bool { return d.env.Height <= x.Since }
		if u.Status != Auditing || !d.Tolerant(*u) || !u.bound() || slices.ContainsFunc(u.Looks, fresh) {
			continue
		}
		u = d.unit(&d.RoundState, i)
		if u.Panel == 0 {
			u.Panel = d.panel(*u)
		}
		if d.look(&d.RoundState, i, int(u.Panel)) {
			continue
		}
		u.Status, u.Looks = Sealed, slices.Clone(u.Looks)
		for k := range u.Looks {
			x := &u.Looks[k]
			x.Since, x.Deadline = d.env.Height, d.due(x.Verifier, openingPatience*d.AuditDeadline())
		}
	}
}

// panel is how many are to look at a unit, of whom the first is bound.
func (d *panels) panel(u Unit) uint32 {
	outside := slices.ContainsFunc(u.Looks, func(x SealedReport) bool { return x.Outside })
	if outside || audit.Draw(d.env.Beacon, d.Terms.Job+"/second", d.Round, u.Index, u.Attempt, audit.SecondPPM) {
		return audit.Panel
	}
	return 1
}

// decide settles a unit of which all who looked have shown what they found.
func (d *panels) decide(l *RoundState, i int) {
	u := d.unit(l, i)
	if len(u.Looks) == 0 || slices.ContainsFunc(u.Looks, func(x SealedReport) bool { return !x.Shown }) {
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
			d.audits.unanswered(l, i, x.Verifier, WhyDiffers)
			d.audits.expel(l, u, x.Verifier, WhyDiffers)
		}
	}
	kind := AuditPassed
	if most[0].Outside {
		kind = AuditOutside
	}
	for _, x := range most {
		d.emit(Event{Kind: kind, Round: l.Round, Unit: u.Index, Who: x.Verifier, Other: u.Worker})
	}
	if most[0].Outside {
		d.outside(i, most, len(most) == len(looks))
		return
	}
	u.Passed, u.End = true, most[0].Finding.End
	d.change(u.Worker, func(m *Member) { m.Passed++ })
	d.audits.accept(l, i)
}

// majority is that part of a panel that has found the same, if it is more than half of it.
func majority(looks []SealedReport) []SealedReport {
	for _, x := range looks {
		same := slices.DeleteFunc(slices.Clone(looks), func(y SealedReport) bool { return y.Finding != x.Finding })
		if 2*len(same) > len(looks) {
			return same
		}
	}
	return nil
}

// undecided settles a unit of which no two found the same, as where nobody else is there to look: what is not outside
// for most counts. Which of them looked nobody can tell, so that none is paid, and none is out.
func (d *panels) undecided(l *RoundState, i int, looks []SealedReport) {
	outside := 0
	for _, x := range looks {
		d.audits.unanswered(l, i, x.Verifier, WhyContradicted)
		if x.Outside {
			outside++
		}
	}
	if 2*outside > len(looks) {
		d.unit(l, i).Status = Accepted // nothing is left to answer
		d.audits.units.withhold(i, WhyOutside, nil)
		return
	}
	d.audits.accept(l, i)
}

// lateLooks replaces verifiers who did not report in time. A verifier of several units has missed one deadline.
func (d *panels) lateLooks() {
	late := func(x SealedReport) bool { return x.Seal.IsZero() && d.env.Height > x.Deadline }
	var missed []string
	for i, u := range d.Units {
		if u.Status != Auditing || !d.Tolerant(*u) || !slices.ContainsFunc(u.Looks, late) {
			continue
		}
		for _, x := range u.Looks {
			if late(x) && !slices.Contains(missed, x.Verifier) {
				missed = append(missed, x.Verifier)
			}
		}
		d.overlook(&d.RoundState, i, WhyMissedDeadline, late)
	}
	for _, id := range missed {
		d.recordMiss(id, WhyMissedAudits)
	}
	for i, u := range d.Units {
		if u.Status == Auditing && d.Tolerant(*u) && len(u.Looks) == 0 {
			d.auditAgain(i, missed)
		}
	}
}

// overlook takes looks from a panel that end without an answer.
func (d *panels) overlook(l *RoundState, i int, why string, which func(SealedReport) bool) {
	u := d.unit(l, i)
	for _, x := range u.Looks {
		if which(x) {
			d.emit(Event{Kind: AuditMissed, Round: l.Round, Unit: u.Index, Who: x.Verifier, Other: u.Worker,
				Why: d.gone(x.Verifier, why)})
		}
	}
	u.Looks = slices.DeleteFunc(slices.Clone(u.Looks), which)
}

// auditAgain draws somebody to look at a unit of the current round at which nobody looks.
func (d *panels) auditAgain(i int, late []string) {
	u := d.unit(&d.RoundState, i)
	u.Panel = 0
	if d.halted() {
		return
	}
	if d.env.Beacon.IsZero() || !d.look(&d.RoundState, i, 1, late...) {
		u.Status, u.Audited = Committed, true
	}
}

// lateFigures excludes the verifiers who did not show in time what they were bound to. The others decide.
func (d *panels) lateFigures() {
	late := func(x SealedReport) bool { return !x.Shown && d.env.Height > x.Deadline }
	for i, u := range d.Units {
		if u.Status != Sealed || !d.Tolerant(*u) || !slices.ContainsFunc(u.Looks, late) {
			continue
		}
		looks := u.Looks
		d.overlook(&d.RoundState, i, WhySealUnopened, late)
		u = d.unit(&d.RoundState, i)
		for _, x := range looks {
			if m, _ := d.Member(x.Verifier); late(x) && !sealUnopenable(m) {
				d.audits.expel(&d.RoundState, u, x.Verifier, WhySealUnopened)
			}
		}
		if len(u.Looks) == 0 {
			d.auditAgain(i, nil)
		}
		d.decide(&d.RoundState, i)
	}
}

// releaseLooks replaces verifiers who left, and those whose word is worth nothing. What others are bound to they still
// owe.
func (d *panels) releaseLooks(out map[string]bool) {
	for i, u := range d.Units {
		if u.Status != Auditing && u.Status != Sealed || !d.Tolerant(*u) {
			continue
		}
		void := func(x SealedReport) bool {
			m, _ := d.Member(x.Verifier)
			return out[x.Verifier] && !x.Shown && (x.Seal.IsZero() || sealUnopenable(m))
		}
		if !slices.ContainsFunc(u.Looks, void) {
			continue
		}
		d.overlook(&d.RoundState, i, WhyVerifierLeft, void)
		if len(d.Units[i].Looks) == 0 {
			d.auditAgain(i, nil)
		}
		if d.Units[i].Status == Sealed {
			d.decide(&d.RoundState, i)
		}
	}
}
