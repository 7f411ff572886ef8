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

// Refute takes back an attested checkpoint that its updates do not make. The caller has checked that by recomputation,
// so any account may send it. The members that signed the checkpoint are excluded and slashed. The run returns to the
// round that the checkpoint ended; its commitments stay, and the other members attest it again, including those that
// were excluded for another vote. In a run in slices members sign what reducers computed, and are not slashed for it:
// ShowSlice settles a checkpoint there.
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
