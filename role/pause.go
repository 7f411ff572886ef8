package role

import (
	"errors"
	"slices"
	"strings"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/work"
)

// ErrPaused is the cause for which the context of an action ends that a paused member sets aside, to ask for it again.
var ErrPaused = errors.New("role: the member is paused")

// Yields reports whether an action waits until a pause of a member is over. Messages do not wait, nor does the
// execution of a unit without which the member could not answer for its work: to show that a fault in its commitment
// was planted, or to challenge the attempt that contradicts its report. Moves in disputes and openings of seals may
// execute a unit again, too.
func Yields(s *run.State, member string, a Action) bool {
	switch a := a.(type) {
	case Load, Advance, Reduce, Measure, Return:
		return true
	case Train:
		d, ok := s.Find(a.Work)
		return !ok || d.Status == work.Assigned || d.Status == work.Committed
	case Check:
		d, ok := s.Find(a.Work)
		return !ok || !d.ProvesReportFalse(member)
	}
	return false
}

// SetAside returns orders to stop the actions under way that yield to a pause.
func (p *Pending) SetAside(yields func(Action) bool) (stops []Action) {
	for k, a := range p.under {
		if yields(a) {
			stops = append(stops, Stop{Of: k, Keep: true})
		}
	}
	slices.SortFunc(stops, func(a, b Action) int { return strings.Compare(a.Key(), b.Key()) })
	return stops
}
