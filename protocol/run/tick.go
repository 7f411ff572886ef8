package run

// Tick moves a run on at the end of a block, after its messages: it enforces deadlines, draws audits, lets rounds become
// final and deals units.
func (s State) Tick(env Env) (State, []Event) {
	if s.over() {
		return s, nil
	}
	d := s.edit(env)
	d.lateUnits()
	d.lateAudits()
	d.ask()
	d.lateOpenings()
	d.draw()
	d.trials()
	d.settle()
	d.diverge()
	switch d.Phase {
	case Assign:
		d.deal()
	case Reduce:
		d.reduce()
	case Attest:
		if !d.Attestable() {
			d.Since = env.Height // nobody can vote
		}
		d.lateVotes()
	}
	return d.done()
}

// settle lets the oldest rounds become final, and the run be done with the last.
func (d *draft) settle() {
	for !d.halted() && len(d.Open) > 0 && d.final(d.Open[0]) {
		lap := d.Open[0]
		d.Open = d.Open[1:]
		d.Sample = d.example(lap, true)
		d.emit(Event{Kind: RoundFinal, Round: lap.Round, Lap: &lap})
	}
	if d.settleVoid(); d.Phase == Settle && len(d.Open) == 0 && len(d.Void) == 0 {
		d.enter(Done)
		d.emit(Event{Kind: RunDone, Round: d.Round})
	}
}

// final reports whether nothing is or may come open about an attested round. Without verifiers nobody can challenge.
func (d *draft) final(l Lap) bool {
	for _, u := range l.Units {
		if u.Status != Accepted {
			return false
		}
	}
	return l.Drawn && (d.env.Height >= l.Attested+d.Terms.Deadlines.Challenge || len(d.Active(Verifier)) == 0)
}
