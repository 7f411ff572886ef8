package run

import "github.com/starling-network/starling/protocol/run/schedule"

// In a dispute silence costs stake. So nobody's time for a move follows from what the other party did, who could be
// quick on purpose: it is some times what it needed itself, and never less than the deadline of an audit, than a share
// of what the terms give for one, and than leastMove. Some times the deadline is no more than what the terms give.
const (
	// times what a party needs for a unit: it executes it again, traces a step, and may first have to finish another
	movePatience = 4
	leastMove    = 24 // blocks
	termsMove    = 4  // the part of the terms' deadline of an audit that is the least time for a move
)

// MoveBlocks are the blocks that the worker of a unit and a challenger have for a move in their dispute. Who waits for
// the end of another dispute about the unit may prepare its moves meanwhile, and has less.
func (c Crew) MoveBlocks(u Unit, challenger string) (worker, other int64) {
	blocks := func(needs int64) int64 {
		usual, most := c.AuditDeadline(), c.Terms.Deadlines.Audit
		return max(movePatience*needs, usual, min(movePatience*usual, most), most/termsMove, leastMove)
	}
	w, _ := c.Member(u.Worker)
	o, _ := c.Member(challenger)
	worker, other = blocks(max(u.Took, w.pace())), blocks(o.pace())
	if len(u.Challengers) > 1 {
		other = max(leastMove, other/movePatience)
	}
	return worker, other
}

// pace is the smoothed time that the member takes for a whole unit, in blocks; 0 if it is not measured.
func (m Member) pace() int64 { return (int64(m.Speed) + 255) >> 8 }

// ChallengeBlocks are the blocks from the attestation of a round in which its units may be challenged: what the terms
// say, and at least as long as a median worker takes to do a unit twice, and half of that time again to say so.
func (c Crew) ChallengeBlocks() int64 {
	speeds := c.speeds(Worker)
	if len(speeds) == 0 {
		return c.Terms.Deadlines.Challenge
	}
	middle := schedule.Weighted(speeds)
	return max(c.Terms.Deadlines.Challenge, 2*middle+middle/2+1)
}

// speeds are the paces of the members of a role that are measured and active.
func (c Crew) speeds(r Role) (all []schedule.Share) {
	for _, m := range c.Members {
		if m.Role == r && m.Active && m.Speed > 0 {
			all = append(all, schedule.Share{Blocks: m.pace(), Weight: max(1, m.Stake)})
		}
	}
	return all
}
