package lineage

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// Diverge ends a run with a diverged unit, once that can no longer be questioned: all audits of the round are over,
// every earlier round is final, and the time for challenges has passed.
func (d *Lineage) Diverge() {
	if d.rollbacks.lost() && len(d.Open) == 0 && len(d.RolledBack) == 0 {
		d.Halt(reason.Diverged)
	}
}

// lost reports whether a unit of the current round diverged and that can no longer be questioned.
func (d *Rollbacks) lost() bool {
	if _, diverged := d.Diverged(); !diverged || d.Phase != progress.Attest || !d.Drawn {
		return false
	}
	settled := !slices.ContainsFunc(d.Units, func(u *work.Unit) bool { return u.Status != work.Accepted })
	return settled && d.Env.Height >= d.Closed+d.ChallengeBlocks()
}

// SettleRounds makes the oldest rounds final where possible, and ends the run with the last.
func (d *Lineage) SettleRounds() {
	for n := d.together(); !d.Halted() && n > 0; n = d.together() {
		for _, lap := range d.Open[:n] {
			if len(lap.From) == 0 || d.Terms.Draws(lap.Round) {
				d.LatestFinal = d.rollbacks.seats.Example(lap, true, "")
			}
			d.panels.SettleDeposits(lap)
			d.keep(lap)
			d.Emit(event.Event{Kind: event.RoundFinal, Round: lap.Round, RoundState: &lap})
		}
		d.Open = d.Open[n:]
	}
	if d.rollbacks.settleVoid(); d.Phase == progress.Settle && len(d.Open) == 0 && len(d.RolledBack) == 0 {
		d.Enter(progress.Done)
		d.Emit(event.Event{Kind: event.RunDone, Round: d.Round})
	}
}

// together is how many of the oldest rounds become final now: one, or, in a run whose units carry a state, all rounds
// of the group. Until then each carried state can be computed again from checkpoints that are still stored, and a
// worker that committed a false one can be convicted.
func (d *Lineage) together() int {
	for n, l := range d.Open {
		switch last := n+1 == len(d.Open); {
		case !d.final(l):
			return 0
		case !d.Terms.Carries(l.Round) || last && d.ends():
			return n + 1
		}
	}
	return 0
}

// ends reports whether, as far as can be seen, no round begins after the attested ones. Where rounds overlap, the
// updates of the round before are needed while the current one may continue.
func (d *Lineage) ends() bool {
	_, diverged := d.Diverged()
	return diverged && (!d.Terms.Overlap || d.rollbacks.lost()) ||
		d.Phase == progress.Assign && (d.Env.CancelRequested || d.Env.BudgetExhausted)
}

// final reports whether nothing is or may become open about an attested round. Without verifiers no challenge is
// possible. Answers may be committed after their round is attested: they may be challenged as long as updates, and
// until every round that learns from them is attested.
func (d *Lineage) final(l work.RoundState) bool {
	for _, u := range l.Units {
		if u.Status != work.Accepted {
			return false
		}
	}
	if d.Terms.Rollout.Units > 0 {
		until := max(l.Attested, l.Filled) + max(d.openBlocks(l), d.DrawDeadline(1))
		return l.Drawn && !d.IsRead(l.Round) && d.Env.Height >= until
	}
	return l.Drawn && d.Env.Height >= l.Attested+d.openBlocks(l)
}

// openBlocks is how many blocks a round stays open after its attestation. Members that cannot fetch one of its updates
// cannot tell whether the checkpoint follows from the updates. One report gives them the time to execute every unit of
// the round again, one after the other, and to refute the checkpoint.
func (d *Lineage) openBlocks(l work.RoundState) int64 {
	blocks, units := d.ChallengeBlocks(), l.Units.Learning()
	if d.Rules.Extend(d.Terms) && slices.ContainsFunc(units, func(u *work.Unit) bool { return len(u.Missing) > 0 }) {
		return blocks * int64(1+len(units))
	}
	return blocks
}

// IsRead reports whether a round that is not attested learns from the answers of a round.
func (d *Lineage) IsRead(round uint32) bool {
	return d.Terms.Draws(round) && round+d.Terms.Rollout.Staleness >= d.Round && d.Round < d.Terms.Rounds && !d.ends()
}
