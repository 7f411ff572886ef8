package run

// Tick moves a run on at the end of a block, after its messages: it deals units, draws audits and enforces deadlines.
func (s State) Tick(env Env) (State, []Event) {
	d := s.edit(env)
	switch s.Phase {
	case Assign:
		d.deal()
	case Train, Exchange:
		d.lateUnits()
		d.lateAudits()
		d.draw()
	case Attest:
		d.lateVotes()
	default:
		return s, nil
	}
	return d.done()
}

// Halt ends a run that its caller does not let go on, such as one whose escrow does not cover another round.
func (s State) Halt(env Env, why string) (State, []Event) {
	if s.Phase == Done || s.Phase == Halted {
		return s, nil
	}
	d := s.edit(env)
	d.halt(why)
	return d.State, d.events
}
