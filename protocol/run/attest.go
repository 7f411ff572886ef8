package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
)

// Attest is a member's vote for the checkpoint after the current round. The caller has verified that v is signed over
// State.Attestation(v.Next).Digest().
func (s State) Attest(env transition.Env, round uint32, v progress.Vote) (State, []event.Event, error) {
	if err := admission.Sender(s.Progress, v.Member); err != nil {
		return s, nil, err
	}
	switch {
	case round != s.Round:
		return s, nil, fmt.Errorf("%w: round %d, the run is in round %d", refusal.ErrStale, round, s.Round)
	case s.Phase != progress.Attest && !s.Combines():
		return s, nil, fmt.Errorf("%w: a unit of round %d is not committed, or a slice not agreed", refusal.ErrWrongPhase,
			s.Round)
	case !s.Attestable():
		return s, nil, fmt.Errorf("%w: a unit has diverged, or a tolerant round has audits that are not over",
			refusal.ErrWrongPhase)
	case s.Voted(v.Member):
		return s, nil, fmt.Errorf("%w: %s has attested round %d", refusal.ErrDuplicate, v.Member, s.Round)
	case v.Next.Round != s.Round+1:
		return s, nil, fmt.Errorf("%w: checkpoint of round %d, wanted %d", refusal.ErrBadVote, v.Next.Round, s.Round+1)
	case v.Next.Root.IsZero() || !terms.ValidCID(v.Next.CID):
		return s, nil, fmt.Errorf("%w: the checkpoint needs a state root and a CID", refusal.ErrBadVote)
	case len(v.PublicKey) > terms.MaxKey || len(v.Signature) > terms.MaxKey:
		return s, nil, fmt.Errorf("%w: key and signature have at most %d bytes", refusal.ErrBadVote, terms.MaxKey)
	}
	v.PublicKey, v.Signature = slices.Clone(v.PublicKey), slices.Clone(v.Signature)
	d := s.edit(env)
	d.Votes = append(slices.Clip(d.Votes), v)
	d.Change(v.Member, func(m *crew.Member) { m.Silent = 0 })
	d.Tally()
	after, events := d.finish()
	return after, events, nil
}
