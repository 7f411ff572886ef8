package crew

import (
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Pace is the smoothed time that the member takes for a whole unit, in blocks; 0 if it is not measured.
func (m Member) Pace() int64 { return (int64(m.Speed) + 255) >> 8 }

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
			all = append(all, schedule.Share{Blocks: m.Pace(), Weight: max(1, m.Stake)})
		}
	}
	return all
}

// Novice is how many times the deadline of others a worker has which is not measured: it may still have to fetch what
// it needs.
const Novice = 4

// TrainDeadline is the number of blocks in which a worker owes its next commitment, to a whole unit. From the first
// observation on it follows what others need: of n observations, fewer than are trusted, it takes schedule.Trusted/n
// times what they say, up to the terms' own deadline. That is for work of which the worst of being late is that it
// counts less; audits and disputes wait for enough observations.
func (c Crew) TrainDeadline() int64 { return c.TrainDeadlineTimes(1) }

func (c Crew) TrainDeadlineTimes(times int64) int64 {
	n, first := int64(len(c.TrainBlocks)), c.Terms.Deadlines.Train
	if n == 0 {
		return first
	}
	blocks := max(schedule.Typical(c.TrainBlocks), c.needed(Worker))
	return max(blocks, min(first, blocks*max(times*n, schedule.Trusted)/n))
}

// AuditDeadline is the number of blocks in which a verifier owes its next answer. To execute a unit again takes as long
// as to execute it, so that whoever answers at once takes nobody else the time that it needs.
func (c Crew) AuditDeadline() int64 {
	return max(terms.MinBlocks, schedule.Adapt(c.AuditBlocks, c.Terms.Deadlines.Audit), c.needed(Worker),
		c.needed(Verifier))
}

// needed is the time in which the most members of a role are done with a whole unit; 0 if none is measured. Every
// member counts once, with its stake, however many units it did.
func (c Crew) needed(r Role) int64 {
	speeds := c.speeds(r)
	if len(speeds) == 0 {
		return 0
	}
	middle := schedule.Weighted(speeds)
	away := make([]schedule.Share, len(speeds))
	for i, v := range speeds {
		away[i] = schedule.Share{Blocks: max(v.Blocks-middle, middle-v.Blocks), Weight: v.Weight}
	}
	return schedule.Allowed(middle, schedule.Weighted(away))
}

// MergeDeadline is the number of blocks in which a reducer owes its next seal. However quick others were, it has time
// to find that nobody has an update that it needs, and to report that: an eighth of what it has when nobody was seen
// yet.
func (c Crew) MergeDeadline() int64 {
	return max(schedule.Adapt(c.ReduceBlocks, c.Terms.Deadlines.Attest), c.Terms.Deadlines.Attest/8)
}
