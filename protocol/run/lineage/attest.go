package lineage

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Tally ends the round when a quorum agrees and its units are committed. When all have voted and there is no quorum,
// more than half of the weight is enough: the checkpoint can be refuted like any other, and one false vote of three
// must not end a run. Without such a majority, the run waits for members to join. If none comes in time, the checkpoint
// with the most weight is attested, and a tie is drawn by the beacon: if the checkpoint is wrong, any account refutes
// it and its signers are excluded. A checkpoint of a round in slices cannot be refuted: there the run ends.
func (d *Lineage) Tally() {
	agree, voted := make(map[terms.Checkpoint]map[string]bool), 0
	for _, v := range d.Votes {
		if d.IsActive(v.Member) {
			if agree[v.Next] == nil {
				agree[v.Next] = map[string]bool{}
			}
			agree[v.Next][v.Member] = true
			voted++
		}
	}
	all := voted == d.CountActive()
	checked := map[terms.Checkpoint]bool{}
	for _, v := range d.Votes {
		if checked[v.Next] {
			continue
		}
		checked[v.Next] = true
		if ids := agree[v.Next]; d.Quorate(ids) || all && !d.Terms.Sliced() && d.Exceeds(ids, 1, 2) {
			if d.ended() {
				d.attested(v.Next)
			}
			return
		}
	}
	switch late := d.Env.Height >= d.Since+transition.MaxMissedAlone*d.Terms.Deadlines.Attest; {
	case !all || voted > 0 && !late:
	case voted == 0 || d.Terms.Sliced():
		d.Halt(reason.NoQuorum)
	case !d.Env.Beacon.IsZero() && d.ended(): // else in a block that has one
		d.attested(d.heaviest(agree))
	}
}

// heaviest is the checkpoint that members of the most weight agree on. The beacon draws one of several with equal
// weight.
func (d *Lineage) heaviest(agree map[terms.Checkpoint]map[string]bool) (next terms.Checkpoint) {
	var most uint64
	var drawn canon.Digest
	for _, v := range d.Votes {
		ids := agree[v.Next]
		if ids == nil || v.Next == next {
			continue
		}
		weight, _ := d.Weighs(ids)
		lot := canon.Sum("starling/run/tie/1", d.Env.Beacon[:], v.Next.Root[:], []byte(v.Next.CID))
		if next == (terms.Checkpoint{}) || weight > most ||
			weight == most && bytes.Compare(lot[:], drawn[:]) < 0 {
			next, most, drawn = v.Next, weight, lot
		}
	}
	return next
}

// attested adds a checkpoint to the lineage and begins the next round. The round stays open until it is final.
func (d *Lineage) attested(next terms.Checkpoint) {
	entry := &progress.Entry{Attestation: d.Attestation(next), Height: d.Env.Height}
	for _, u := range d.Units.Learning() {
		entry.Workers = append(entry.Workers, u.Worker)
		entry.Logs = append(entry.Logs, u.Commit.Log)
		if !u.Late() && !d.FailedDrawing(u.Worker) && !d.failedStage(u.Worker) {
			d.Change(u.Worker, func(m *crew.Member) { m.Missed = 0 })
		}
	}
	for _, v := range d.Votes {
		switch {
		case v.Next != next:
			d.Leave(v.Member, reason.WrongAttest)
		case d.IsActive(v.Member):
			entry.Votes = append(entry.Votes, v)
		}
	}
	slices.SortFunc(entry.Votes, func(a, b progress.Vote) int { return cmp.Compare(a.Member, b.Member) })
	d.Emit(event.Event{Kind: event.RoundAttested, Round: d.Round, Entry: entry})
	d.Attested = d.Env.Height
	d.Open = append(slices.Clip(d.Open), d.RoundState)
	d.RoundState, d.Votes, d.Slices = work.RoundState{Round: d.Round + 1, Base: next, From: d.handedStates()}, nil, nil
	d.Enter(progress.Assign)
	if d.Round == d.Terms.Rounds {
		d.Enter(progress.Settle)
		return
	}
	d.rollbacks.restore()
}

// failedStage reports whether a worker has lost a stage of the current round. One that lets replicas wait in each round
// would else never have missed several deadlines in a row, as it has other stages.
func (d *Lineage) failedStage(worker string) bool {
	return d.Rules >= progress.HiddenLinks && len(d.Terms.Pipeline.Flops) > 0 &&
		slices.ContainsFunc(d.Units, func(u *work.Unit) bool { return slices.Contains(u.Refused, worker) })
}

// LateVotes counts a missed vote at each deadline of the phase, and excludes members that missed too many. If no member
// has voted, none is excluded: the run waits for all.
func (d *Lineage) LateVotes() {
	if !d.Env.Expired(d.Since, d.Terms.Deadlines.Attest) {
		if d.Env.Height >= d.Since+transition.MaxMissedAlone*d.Terms.Deadlines.Attest {
			d.Tally()
		}
		return
	}
	least := uint32(2 * transition.MaxMissed)
	if slices.ContainsFunc(d.Votes, func(v progress.Vote) bool { return d.IsActive(v.Member) }) {
		least = transition.MaxMissed
	}
	for i := range d.Members {
		m := &d.Members[i]
		if !m.Active || d.Voted(m.ID) {
			continue
		}
		if m.Silent++; m.Silent >= least {
			d.Leave(m.ID, reason.MissedAttest)
		}
	}
	d.Tally()
}

// SyncPhase sets the phase that the units are in: there are commitments to come, or there are none, and then their
// audits can be drawn.
func (d *Lineage) SyncPhase() {
	d.syncDrawn()
	d.voidReplicas()
	open := d.trains()
	switch {
	case d.Phase == progress.Train && !open:
		d.Closed = d.Env.Height
		d.Enter(progress.Attest)
		if _, diverged := d.Diverged(); d.Terms.Sliced() && !diverged {
			d.Enter(progress.Reduce)
		}
		if d.AttestsAhead() { // members may have attested before
			d.Tally()
		}
	case (d.Phase == progress.Attest || d.Phase == progress.Reduce) && open:
		d.Reopen()
	}
}

// trains reports whether a unit of the current round has no commitment.
func (d *Lineage) trains() bool {
	return slices.ContainsFunc(d.Units.Learning(), func(u *work.Unit) bool { return u.Status == work.Assigned })
}

// handedStates is the carried state that each unit of the next round starts from.
func (d *Lineage) handedStates() []work.HandedState {
	if !d.Terms.Carries(d.Round) {
		return nil
	}
	from := make([]work.HandedState, len(d.Units))
	for i, u := range d.Units {
		from[i] = u.Commit.HandedState
	}
	return from
}
