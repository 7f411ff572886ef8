package run

import (
	"fmt"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Refute takes an attested checkpoint back that the caller has found to be another than its updates lead to: what was
// shown is a recomputation, so anybody may show it. Whoever signed the checkpoint is out of the run and is slashed, the
// run goes back to the round that it ended, whose commitments stay, and the others attest that again, also those who
// were out because they had signed something else. Members of a run in slices sign what others computed, and are not
// slashed for it: there a checkpoint is settled by Slice.
func (s State) Refute(env transition.Env, from string, wrong progress.Entry) (State, []event.Event, error) {
	if s.Over() {
		return s, nil, fmt.Errorf("%w: %s", refusal.ErrHalted, s.Terms.Job)
	}
	c := wrong.Attestation.Checkpoint
	l, ok := s.RoundBefore(c)
	switch {
	case s.Terms.Sliced():
		return s, nil, fmt.Errorf("%w: checkpoints of %s are settled by their slices", refusal.ErrWrongPhase, s.Terms.Job)
	case !ok:
		return s, nil, fmt.Errorf("%w: no open round is built on checkpoint %d with root %s", refusal.ErrStale, c.Round,
			c.Root.Short())
	}
	d := s.edit(env)
	d.CancelProbations(func(e progress.ProbationTask) bool { return e.Round > l.Round })
	var signers []string
	for _, v := range wrong.Votes {
		if v.Next == c {
			signers = append(signers, v.Member)
		}
	}
	d.Rollback(l.Round, work.Unit{}, signers...)
	for _, v := range wrong.Votes {
		if v.Next != c {
			continue
		}
		d.Emit(event.Event{Kind: event.CheckpointRefuted, Round: l.Round, Who: v.Member, Other: from,
			Why: reason.WrongAttest})
		d.Leave(v.Member, reason.WrongAttest)
		d.Change(v.Member, func(m *crew.Member) { m.Passed, m.Why = 0, reason.WrongAttest })
	}
	d.RestoreOutvoted(l)
	d.reassignDuties()
	after, events := d.finish()
	return after, events, nil
}
