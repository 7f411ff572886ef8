package witness

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/link"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/train/parts"
)

// stageOf is the number of the stage that the unit is.
func stageOf(w *Witness) int {
	_, s := w.task.Spec.Pipeline.Of(w.unit)
	return int(s)
}

// statesOf are the roots of the states after each step, as evidence.
func statesOf(w *Witness) (s link.States, err error) {
	for step := range w.task.Spec.StepsOf(w.unit) {
		if err := w.at(step + 1); err != nil {
			return s, err
		}
		s.Roots = append(s.Roots, slices.Clone(w.state()))
	}
	return s, nil
}

// headsOf are those of the links of the stage, as its states bind them.
func headsOf(w *Witness) (heads []canon.Digest, err error) {
	names := parts.StateNames(w.task.Step)
	s, err := statesOf(w)
	if err != nil {
		return nil, err
	}
	for _, l := range link.OfStage(w.plan, stageOf(w)) {
		h, err := link.Head(w.plan, l, uint32(len(s.Roots)), func(step uint32, t stages.Transfer) (canon.Digest, error) {
			return s.Roots[step][slices.Index(names, t.Name())], nil
		})
		if err != nil {
			return nil, err
		}
		heads = append(heads, h.Chain)
	}
	return heads, nil
}

// receivedOn brings what shows which values were sent on the link of an input.
func receivedOn(w *Witness, input string) (v link.Values, err error) {
	t, at, ok := link.Received(w.plan, stageOf(w), input)
	if !ok {
		return v, fmt.Errorf("%w: the stage receives no %q", evidence.ErrPayload, input)
	}
	list := link.On(w.plan, link.OfStage(w.plan, stageOf(w))[at])
	for step := range w.task.Spec.StepsOf(w.unit) {
		given, err := w.task.Received(w.base.Round, w.unit, step)
		if err != nil {
			return v, err
		}
		var roots []canon.Digest
		for _, x := range list {
			value := given[fmt.Sprintf("%s%d", parts.Received, x.Value)]
			if value == nil {
				return v, fmt.Errorf("%w: no value %d of stage %d", evidence.ErrPayload, x.Value, t.From)
			}
			roots = append(roots, value.Root())
		}
		v.Roots = append(v.Roots, roots)
	}
	return v, nil
}
