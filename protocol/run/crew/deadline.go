package crew

import (
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Pace is the smoothed time that the member takes for a whole unit, in blocks; 0 if it is not measured.
func (m Member) Pace() int64 { return (int64(m.Speed) + 255) >> 8 }

// ChallengeBlocks is how many blocks after the attestation of a round its units may be challenged: what the terms say,
// and at least 2.5 times what a median worker needs for a unit.
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

// Novice is the factor on the usual deadline for a worker without a measured speed: it may still have to fetch what it
// needs.
const Novice = 4

// TrainDeadline is the number of blocks from the start of a whole unit to its commitment. From the first observation it
// follows what workers need: with n < schedule.Trusted observations it is schedule.Trusted/n times what they say, up to
// the deadline of the terms. A late worker only counts for less, so few observations are enough here; audits and
// disputes wait for schedule.Trusted of them.
func (c Crew) TrainDeadline() int64 { return c.TrainDeadlineTimes(1) }

func (c Crew) TrainDeadlineTimes(times int64) int64 {
	n, first := int64(len(c.TrainBlocks)), c.Terms.Deadlines.Train
	if n == 0 {
		return first
	}
	blocks := max(schedule.Typical(c.TrainBlocks), c.needed(Worker))
	return max(blocks, min(first, blocks*max(times*n, schedule.Trusted)/n))
}

// DrawDeadline is TrainDeadline for a unit that draws, times a factor before its pace is known.
func (c Crew) DrawDeadline(times int64) int64 {
	n, first := int64(len(c.DrawBlocks)), c.Terms.Deadlines.Train
	if n == 0 {
		return first
	}
	blocks := schedule.Typical(c.DrawBlocks)
	return max(blocks, min(first, blocks*max(times*n, schedule.Trusted)/n))
}

// AuditDeadline is the number of blocks in which a verifier owes its next answer. An audit takes as long as the unit
// itself, so verifiers that answer at once do not shorten the time of the others.
func (c Crew) AuditDeadline() int64 {
	return max(terms.MinBlocks, schedule.Adapt(c.AuditBlocks, c.Terms.Deadlines.Audit), c.needed(Worker),
		c.needed(Verifier))
}

// needed is the number of blocks in which most members of a role finish a whole unit; 0 if none is measured. Each
// member counts once, weighted by its stake, however many units it did.
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
// to find that an update is unavailable and to report that: an eighth of the deadline that applies without
// observations.
func (c Crew) MergeDeadline() int64 {
	return max(schedule.Adapt(c.ReduceBlocks, c.Terms.Deadlines.Attest), c.Terms.Deadlines.Attest/8)
}
