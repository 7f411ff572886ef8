package referee

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/link"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Terms reports, as an error that wraps refusal.ErrTerms, in what the terms of a run, by which it is dealt, audited and
// paid, are not those of its work.
func Terms(s *train.Spec, p *program.Program, t terms.Terms) error {
	pipeline, err := Pipeline(s, p)
	if err != nil {
		return fmt.Errorf("%w: %w", refusal.ErrTerms, err)
	}
	over, flops := bits.Mul64(parts.Flops(p), uint64(s.Steps))
	if s.Pipeline != nil {
		flops = slices.Max(pipeline.Flops)
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{refusal.ErrTerms}, args...)...)
	}
	switch {
	case t.Spec != s.Digest():
		return bad("the work specification is %s, the terms say %s", s.Digest().Short(), t.Spec.Short())
	case t.Rounds != s.Rounds || t.Units != s.Units || t.Segments != s.Segments():
		return bad("the work has %d rounds of %d units in %d segments, the terms %d, %d and %d", s.Rounds, s.Units,
			s.Segments(), t.Rounds, t.Units, t.Segments)
	case t.Overlap != (s.Exchange.Overlap > 0):
		return bad("rounds of the work overlap: %t, the terms say %t", !t.Overlap, t.Overlap)
	case t.Carry != s.Exchange.Carry:
		return bad("units carry a state through %d rounds, the terms say %d", s.Exchange.Carry, t.Carry)
	case !slices.Equal(t.Sizes, s.Sizes):
		return bad("the work has units of %v segments, the terms of %v", s.Sizes, t.Sizes)
	case over > 0 || t.UnitFlops != flops:
		return bad("a unit of the work has %d operations, the terms pay for %d", flops, t.UnitFlops)
	case (t.Led > 0) != s.Led:
		return bad("the consumer leads the work: %t, the terms say %t", s.Led, t.Led > 0)
	case t.Rollout != Rollout(s, p):
		return bad("answers of the work are drawn apart as %+v, the terms say %+v", Rollout(s, p), t.Rollout)
	case !slices.Equal(t.Pipeline.Flops, pipeline.Flops) || !slices.Equal(t.Pipeline.Links, pipeline.Links) ||
		!slices.Equal(t.Pipeline.Frames, pipeline.Frames):
		return bad("the work is cut into stages as %+v, the terms say %+v", pipeline, t.Pipeline)
	case t.Genesis.Root != s.Genesis:
		return bad("the work starts from %s, the terms say %s", s.Genesis.Short(), t.Genesis.Root.Short())
	}
	return nil
}

// Bound reports, as an error that wraps refusal.ErrTerms, in what terms are not those of the work.
func (r *Referee) Bound(t terms.Terms) error { return Terms(r.spec, r.step, t) }

// Bases are the digests by which the work names what it is made from.
func (r *Referee) Bases() []canon.Digest {
	return []canon.Digest{r.spec.Genesis, r.spec.Frozen, r.spec.Data}
}

// Rollout are the terms of the units of a work that draw; the zero value if there are none.
func Rollout(s *train.Spec, p *program.Program) (r terms.Rollout) {
	if s.Rollout != nil {
		r = terms.Rollout{Units: s.Apart().Drawing(), Staleness: s.Rollout.Staleness, Flops: parts.DrawFlops(p),
			Shared: s.Rollout.Shared}
	}
	return r
}

// Pipeline are the terms of the units of a work that are stages of replicas; the zero value if they are not.
func Pipeline(s *train.Spec, p *program.Program) (t terms.Pipeline, err error) {
	if s.Pipeline == nil {
		return t, nil
	}
	plan, err := stages.Cut(p, s.Pipeline.Cuts())
	if err != nil {
		return t, err
	}
	for _, st := range plan.Stages {
		t.Flops = append(t.Flops, st.Whole.Flops()*uint64(s.Steps))
	}
	t.Links = link.Of(plan)
	for _, l := range t.Links {
		t.Frames = append(t.Frames, uint64(len(link.Frames(plan, l)))*uint64(s.Steps))
	}
	return t, nil
}
