package work

import ()

// PreviousAssignee is who had a unit of the current round and was late with it. Its unit went to another, but what it
// has done is not lost: while nobody has committed the unit it may still commit, to its own attempt, and then has the
// unit again. So a machine that comes back from a fault within the round is paid for what it did, and one slower than
// its deadline is measured all the same. A unit that was committed and is taken away again starts over without former
// holders: nothing that was begun before the reason to take it away may count. Only where the update of exact work
// could not be had they may still commit.
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

// Assignee is who has a unit.
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
