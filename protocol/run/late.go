package run

import (
	"fmt"

	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/work"
)

// heldBy finds the attempt that a worker may commit to.
func heldBy(s State, from string, id work.UnitID) (work.PreviousAssignee, error) {
	if err := admission.Sender(s.Progress, from); err != nil {
		return work.PreviousAssignee{}, err
	}
	for _, h := range s.PreviousAssignments(from, id.Round, id.Unit) {
		if h.Attempt == id.Attempt {
			return h, nil
		}
	}
	u, err := admission.Find(s.Progress, id)
	switch {
	case err != nil && id.Round == s.Round && uint64(id.Unit) < uint64(len(s.Units)) &&
		s.Units[id.Unit].Status != work.Assigned:
		return work.PreviousAssignee{}, fmt.Errorf(
			"%w: unit %d went to %s, who has committed it",
			err,
			id.Unit,
			s.Units[id.Unit].Worker,
		)
	case err != nil:
		return work.PreviousAssignee{}, err
	case u.Worker != from:
		return work.PreviousAssignee{}, fmt.Errorf("%w: unit %d is assigned to %s", refusal.ErrNotYours, id.Unit, u.Worker)
	case u.Status != work.Assigned:
		return work.PreviousAssignee{}, fmt.Errorf("%w: unit %d is committed", refusal.ErrDuplicate, id.Unit)
	}
	return u.Assignee(), nil
}
