package notify

import "fmt"

// Limits of a rise of the loss.
const (
	risesInARow = 2    // evaluations above the lowest before
	riseLeast   = 1.02 // of the lowest, at the last of them
)

// rise watches the loss on held-out data. It reports one rise until there is a new lowest loss.
type rise struct {
	seen   bool
	lowest float64
	inRow  int
	told   bool
}

// next takes an evaluation, and reports whether the loss has begun to rise.
func (r *rise) next(loss float64) bool {
	if !r.seen || loss < r.lowest {
		*r = rise{seen: true, lowest: loss}
		return false
	}
	r.inRow++
	if r.told || r.inRow < risesInARow || loss < r.lowest*riseLeast {
		return false
	}
	r.told = true
	return true
}

// Evaluated tells when the loss on held-out data rises. e is an event after an evaluation.
func (s *Sender) Evaluated(e Event) {
	if s == nil || e.EvalLoss == nil || !s.rise.next(*e.EvalLoss) {
		return
	}
	e.Event = LossRises
	s.Send(e, fmt.Sprintf("The loss of %s on held-out data rises: %.4g after round %d of %d, and %.4g at its lowest.",
		e.Name, *e.EvalLoss, e.Round, e.Rounds, s.rise.lowest))
}

// Lost tells of a member that is out of the run before the end of the run. workers is how many train on.
func (s *Sender) Lost(role, id, why string, workers int, e Event) {
	e.Event, e.Member = MemberLost, id
	s.Send(e, fmt.Sprintf("%s lost the %s %s in round %d of %d (%s): %d workers train on.", e.Name, role, id, e.Round+1,
		e.Rounds, why, workers))
}
