package work

// PreviousAssignee is a worker that had a unit of the current round and was late with it. The unit went to another
// worker, but the late one may still commit, to its own attempt, while the unit has no commitment, and then has the
// unit again. So a machine that recovers from a fault within the round is paid for its work, and one that is slower
// than its deadline is measured all the same. A unit that was committed and is taken away starts over without previous
// assignees: no work that began before the reason to take it away may count. They may still commit only if the unit
// was taken away because the update of exact work was unavailable.
type PreviousAssignee struct {
	Worker     string `cbor:"1,keyasint"`
	Attempt    uint32 `cbor:"2,keyasint"`
	AssignedAt int64  `cbor:"3,keyasint"`
}

// MaxPreviousAssignees is how many former holders of a unit are remembered, the latest.
const MaxPreviousAssignees = 16

func LatestAssignees(all []PreviousAssignee) []PreviousAssignee {
	return all[max(0, len(all)-MaxPreviousAssignees):]
}

// Assignee is the worker that has a unit.
func (u Unit) Assignee() PreviousAssignee {
	return PreviousAssignee{Worker: u.Worker, Attempt: u.Attempt, AssignedAt: u.AssignedAt}
}

// LastAttempt is the highest attempt that was given.
func (u Unit) LastAttempt() uint32 {
	attempt := u.Attempt
	for _, h := range u.PreviousAssignees {
		attempt = max(attempt, h.Attempt)
	}
	return attempt
}

// Late reports whether a unit was committed by a former holder.
func (u Unit) Late() bool { return u.Attempt != u.LastAttempt() }
