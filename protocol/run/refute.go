package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
)

// Combination is what members attest: that Next is the checkpoint which the outer optimizer makes of Base and these
// updates.
type Combination struct {
	Base, Next Checkpoint
	Updates    []Sent // in order of unit
}

// Sent is the update of a unit, as its commitment binds it.
type Sent struct {
	Round, Unit uint32
	Root        canon.Digest
}

// Combination returns what members attested who signed a checkpoint after a round.
func (l RoundState) Combination(next Checkpoint) Combination {
	c := Combination{Base: l.Base, Next: next}
	for _, u := range l.Units {
		c.Updates = append(c.Updates, Sent{Round: l.Round, Unit: u.Index, Root: u.Commit.Update})
	}
	return c
}

// RoundBefore returns the round after which a checkpoint was attested that its rounds are still built on. It is not
// final, and the checkpoint may be shown to be another than its updates lead to.
func (w Window) RoundBefore(c Checkpoint) (RoundState, bool) {
	laps := w.Rounds()
	for i := range w.Open {
		if laps[i+1].Base == c {
			return laps[i], true
		}
	}
	return RoundState{}, false
}

// Refute takes an attested checkpoint back that the caller has found to be another than its updates lead to: what was
// shown is a recomputation, so anybody may show it. Whoever signed the checkpoint is out of the run and is slashed, the
// run goes back to the round that it ended, whose commitments stay, and the others attest that again, also those who
// were out because they had signed something else. Members of a run in slices sign what others computed, and are not
// slashed for it: there a checkpoint is settled by Slice.
func (s State) Refute(env Env, from string, wrong Entry) (State, []Event, error) {
	if s.over() {
		return s, nil, fmt.Errorf("%w: %s", ErrHalted, s.Terms.Job)
	}
	c := wrong.Attestation.Checkpoint
	l, ok := s.RoundBefore(c)
	switch {
	case s.Terms.Sliced():
		return s, nil, fmt.Errorf("%w: checkpoints of %s are settled by their slices", ErrWrongPhase, s.Terms.Job)
	case !ok:
		return s, nil, fmt.Errorf("%w: no open round is built on checkpoint %d with root %s", ErrStale, c.Round,
			c.Root.Short())
	}
	d := s.edit(env)
	d.cancelProbation(func(e ProbationTask) bool { return e.Round > l.Round })
	var signers []string
	for _, v := range wrong.Votes {
		if v.Next == c {
			signers = append(signers, v.Member)
		}
	}
	d.rollback(l.Round, Unit{}, signers...)
	for _, v := range wrong.Votes {
		if v.Next != c {
			continue
		}
		d.emit(Event{Kind: CheckpointRefuted, Round: l.Round, Who: v.Member, Other: from, Why: WhyWrongAttest})
		d.leave(v.Member, WhyWrongAttest)
		d.change(v.Member, func(m *Member) { m.Passed, m.Why = 0, WhyWrongAttest })
	}
	d.outvoted(l)
	d.reassignDuties()
	after, events := d.finish()
	return after, events, nil
}

// outvoted takes back members who are out because they did not sign the checkpoint after a round, which is refuted.
func (d *rollbacks) outvoted(l RoundState) {
	for i := range d.Members {
		m := &d.Members[i]
		refuted := slices.ContainsFunc(d.events, func(e Event) bool { return e.Kind == CheckpointRefuted && e.Who == m.ID })
		if !m.Active && m.Why == WhyWrongAttest && m.Since == l.Attested && !refuted {
			m.Active, m.Why, m.Since = true, "", d.env.Height
			d.emit(Event{Kind: MemberRestored, Round: d.Round, Who: m.ID})
		}
	}
}
