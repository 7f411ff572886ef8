// Package link has the values that a stage of a model exchanged with others in a unit, as the roots that its states
// bind. Both sides of a link have signed the head over them (protocol/handover), and commit to that.
//
// A head that does not follow from the states of its unit, or a value that a stage says it has received and that is not
// among those under the head, is a false claim like any other: referee asks for it, with the evidence of this package.
package link

import (
	"slices"
	"strconv"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/protocol/handover"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Of lists the links of a plan, in ascending order.
func Of(p *stages.Plan) (links []terms.Link) {
	for _, t := range p.Transfers { // by From and To
		if l := (terms.Link{From: uint32(t.From), To: uint32(t.To)}); !slices.Contains(links, l) {
			links = append(links, l)
		}
	}
	return links
}

// OfStage lists those of a stage.
func OfStage(p *stages.Plan, stage int) []terms.Link {
	return terms.Pipeline{Links: Of(p)}.LinksOf(uint32(stage))
}

// Frames are the tasks of a step after which a frame is sent on a link, in their order.
func Frames(p *stages.Plan, l terms.Link) (tasks []order.Task) {
	for _, t := range p.Orders()[l.From] {
		if len(p.Frame(int(l.From), int(l.To), t)) > 0 {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// Head is the head over all frames of some steps. root is that of a value in a step.
func Head(p *stages.Plan, l terms.Link, steps uint32,
	root func(step uint32, t stages.Transfer) (canon.Digest, error)) (h handover.Head, err error) {
	tasks := Frames(p, l)
	for step := range steps {
		for _, task := range tasks {
			var roots []canon.Digest
			for _, t := range p.Frame(int(l.From), int(l.To), task) {
				r, err := root(step, t)
				if err != nil {
					return h, err
				}
				roots = append(roots, r)
			}
			h = h.After(step, uint8(task.Phase), uint32(task.Number), roots)
		}
	}
	return h, nil
}

// States are the roots of the tensors of the states after each step, in the order of train.StateRoot.
type States struct {
	Roots [][]canon.Digest `cbor:"1,keyasint"`
}

// Head is the head of a link of a stage that has gone through states with these roots, the first before the first step.
// The error wraps evidence.ErrPayload: the states are others.
func (s States) Head(p *stages.Plan, stage int, l terms.Link, segments []canon.Digest) (handover.Head, error) {
	if len(s.Roots)+1 != len(segments) {
		return handover.Head{}, evidence.Wrong("states after %d of %d steps", len(s.Roots), len(segments)-1)
	}
	names := parts.StateNames(p.Stages[stage].Whole)
	for k, roots := range s.Roots {
		if len(roots) != len(names) || train.StateRoot(uint32(k)+1, roots) != segments[k+1] {
			return handover.Head{}, evidence.Wrong("these are not the tensors of the state after step %d", k+1)
		}
	}
	return Head(p, l, uint32(len(s.Roots)), func(step uint32, t stages.Transfer) (canon.Digest, error) {
		return s.Roots[step][slices.Index(names, t.Name())], nil
	})
}

// Values are the roots of all values that were sent on a link, by step, in the order of stages.Plan.Transfers.
type Values struct {
	Roots [][]canon.Digest `cbor:"1,keyasint"`
}

// On lists the values that are sent on a link, in order.
func On(p *stages.Plan, l terms.Link) (list []stages.Transfer) {
	for _, t := range p.Transfers {
		if t.From == int(l.From) && t.To == int(l.To) {
			list = append(list, t)
		}
	}
	return list
}

// Head is the head over the values of a number of steps. The error wraps evidence.ErrPayload: they are values of
// another number of steps, or not all values of each.
func (v Values) Head(p *stages.Plan, l terms.Link, steps uint32) (handover.Head, error) {
	list := On(p, l)
	other := func(r []canon.Digest) bool { return len(r) != len(list) }
	if len(v.Roots) != int(steps) || slices.ContainsFunc(v.Roots, other) {
		return handover.Head{}, evidence.Wrong("values of %d steps of %d, or not %d in each", len(v.Roots), steps, len(list))
	}
	return Head(p, l, steps, func(step uint32, t stages.Transfer) (canon.Digest, error) {
		return v.Roots[step][slices.IndexFunc(list, func(o stages.Transfer) bool { return o.Value == t.Value })], nil
	})
}

// Received is the value that an input of the program of a stage is, and the place of its link among those of the stage;
// false: the input is none that another stage sends.
func Received(p *stages.Plan, stage int, input string) (t stages.Transfer, at int, ok bool) {
	rest, is := strings.CutPrefix(input, parts.Received)
	value, err := strconv.Atoi(rest)
	if !is || err != nil {
		return t, 0, false
	}
	i := slices.IndexFunc(p.Transfers, func(t stages.Transfer) bool { return t.To == stage && int(t.Value) == value })
	if i < 0 {
		return t, 0, false
	}
	t = p.Transfers[i]
	return t, slices.Index(OfStage(p, stage), terms.Link{From: uint32(t.From), To: uint32(t.To)}), true
}
