package run

// Tick moves a run on at the end of a block, after its messages: it enforces deadlines, draws audits, lets rounds
// become final and deals units.
func (s State) Tick(env Env) (State, []Event) {
	if s.over() {
		return s, nil
	}
	d := s.edit(env)
	d.lateUnits()
	d.lateAudits()
	d.lateLooks()
	d.ask()
	d.completePanels()
	d.hasten()
	d.lateOpenings()
	d.lateFigures()
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
		if !d.Attestable() || d.stuck() {
			d.Since = env.Height // nobody can vote, or not everybody can
		}
		d.lateVotes()
	}
	return d.finish()
}

// settle lets the oldest rounds become final, and the run be done with the last.
func (d *lineage) settle() {
	for n := d.together(); !d.halted() && n > 0; n = d.together() {
		for _, lap := range d.Open[:n] {
			if len(lap.From) == 0 {
				d.LatestFinal = d.rollbacks.seats.example(lap, true)
			}
			d.rollbacks.audits.panels.deposits(lap)
			d.emit(Event{Kind: RoundFinal, Round: lap.Round, RoundState: &lap})
		}
		d.Open = d.Open[n:]
	}
	if d.rollbacks.settleVoid(); d.Phase == Settle && len(d.Open) == 0 && len(d.RolledBack) == 0 {
		d.enter(Done)
		d.emit(Event{Kind: RunDone, Round: d.Round})
	}
}

// together is how many of the oldest rounds become final now: one, or in a run whose units hand on a state all that do
// so to each other. Until then each of these states can be computed again from checkpoints that nobody has forgotten,
// and who lied about one can be convicted.
func (d *lineage) together() int {
	for n, l := range d.Open {
		switch last := n+1 == len(d.Open); {
		case !d.final(l):
			return 0
		case !d.Terms.Carries(l.Round) || last && d.ends():
			return n + 1
		}
	}
	return 0
}

// ends reports whether no round begins any more after those that are attested, as far as can be seen.
// Where rounds overlap, the updates of the round before are needed as long as the current one may go on.
func (d *lineage) ends() bool {
	_, diverged := d.Diverged()
	return diverged && (!d.Terms.Overlap || d.rollbacks.lost()) ||
		d.Phase == Assign && (d.env.CancelRequested || d.env.BudgetExhausted)
}

// final reports whether nothing is or may come open about an attested round. Without verifiers nobody can challenge.
func (d *lineage) final(l RoundState) bool {
	for _, u := range l.Units {
		if u.Status != Accepted {
			return false
		}
	}
	return l.Drawn && d.env.Height >= l.Attested+d.ChallengeBlocks()
}
