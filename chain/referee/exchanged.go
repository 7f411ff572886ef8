package referee

import (
	"slices"

	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/link"
	"github.com/starling-network/starling/protocol/dispute"
)

// A unit that is a stage of a model commits to the head of each of its links, and so does the other side: the chain
// takes no commitments that differ. The values that it has received are under those heads, and the heads follow from
// its states.

// received answers for an input that another stage has sent.
func received(r *Referee, c dispute.Claim, name string, payload []byte) (dispute.Ruling, error) {
	if r.plan == nil { // of a stage that no run has
		return rule(c.Output, c.Output), nil
	}
	t, at, ok := link.Received(r.plan, r.stage, name)
	if !ok || at >= len(c.Links) {
		return dispute.Ruling{}, evidence.Wrong("stage %d receives no %q", r.stage, name)
	}
	var p link.Values
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	of := link.OfStage(r.plan, r.stage)[at]
	h, err := p.Head(r.plan, of, r.spec.StepsOf(c.Unit))
	switch {
	case err != nil:
		return dispute.Ruling{}, err
	case h.Chain != c.Links[at]:
		return dispute.Ruling{}, evidence.Wrong("these are not the values that were exchanged on link %d", at)
	case c.Step >= r.spec.StepsOf(c.Unit):
		return dispute.Ruling{}, evidence.Wrong("the unit has no step %d", c.Step)
	}
	list := link.On(r.plan, of)
	for i := range list {
		if list[i].Value == t.Value {
			return rule(p.Roots[c.Step][i], c.Output), nil
		}
	}
	return dispute.Ruling{}, evidence.Wrong("stage %d receives no %q", r.stage, name)
}

// exchanged answers for the head of a link.
func exchanged(r *Referee, c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	links := link.OfStage(r.plan, r.stage)
	if uint64(c.Index) >= uint64(len(links)) {
		return dispute.Ruling{}, evidence.Wrong("stage %d has no link %d", r.stage, c.Index)
	}
	var p link.States
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	h, err := p.Head(r.plan, r.stage, links[c.Index], slices.Clone(c.Segments))
	if err != nil {
		return dispute.Ruling{}, err
	}
	return rule(h.Chain, c.Output), nil
}
