package fault

import (
	"slices"
	"time"

	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
)

// Parts of the bounds below, in blocks.
const (
	// package node asks a worker for its update; package peer dials who does not answer, and searches others
	awaited = int64((20 + 15 + 10) * time.Second / blockTime)
	// six that wait for each other, each in the next block or the one after
	messages = 12
	// deadlines of a unit for a probation task, and for opening the seal that answers it
	probation = 4 + 4
)

// strikes notes that a fault has happened, and by when its round is to be over.
func (j *job) strikes(s run.State) {
	j.hurt, j.hurtAt, j.within = s.Round, j.height, j.spell(s)
}

// strike notes that a fault happens after the next block.
func (j *job) strike() run.State {
	s := j.after(0)
	j.strikes(s)
	return s
}

// owed returns the deadline of a unit in blocks, which doubles after each missed deadline.
func owed(s run.State, missed uint32) int64 { return s.TrainDeadline() << min(missed, 4) }

// spell is in how many blocks the round of a state is over, by the rules of package run, though one of its members does
// nothing any more: its unit is late, another has a deadline for it; an update that is gone is looked for, and its unit
// done again; and a slice that it was to combine goes to another.
func (j *job) spell(s run.State) int64 {
	var left, each int64
	for _, m := range s.Members {
		if m.Active {
			each = max(each, owed(s, m.Missed))
		}
	}
	for _, u := range s.Units {
		if u.Status == work.Assigned {
			left = max(left, u.Deadline-j.height)
		}
	}
	blocks := max(left, each) + each + awaited + each + messages
	if s.Terms.Sliced() {
		blocks += s.MergeDeadline()
	}
	return blocks
}

// absence returns, in blocks, how long a member that has returned may take until it has a part in a checkpoint, by
// the rules of the run: the open round ends, and in the next one the member does its unit. A member that has left the
// run, or that leaves with the next deadline that it misses, rests, and first reproduces units of others as
// probation.
func (j *job) absence(s run.State, id string) int64 {
	m, _ := s.Member(id)
	blocks := j.spell(s) + owed(s, m.Missed)
	// rounds wait for this member while too many rounds are not final, and its units are assigned again
	if !m.Active || m.Missed > 1 || m.Role == crew.Verifier {
		blocks += s.TrainDeadline()<<min(m.Returns, 4) + probation*s.TrainDeadline()
	}
	return blocks
}

// attested is the block with the checkpoint of a round, counted from 1.
func (j *job) attested(round uint32) int64 {
	j.t.Helper()
	e, err := j.chain.Training.Lineage(j.t.Context(), j.id, round)
	if err != nil {
		j.t.Fatal(err)
	}
	return e.Height
}

// partakes reports whether a member has a part in a checkpoint after that of a round, and in which round: it did a
// unit of that round, or it is among the first signers of the checkpoint that make up the quorum.
func (j *job) partakes(p *process, after uint32) (uint32, bool) {
	s := j.run(j.id)
	for round := after + 1; round <= s.Base.Round; round++ {
		e, err := j.chain.Training.Lineage(j.t.Context(), j.id, round)
		if err == nil && (slices.Contains(e.Workers, p.address) ||
			slices.ContainsFunc(e.Votes, func(v progress.Vote) bool { return v.Member == p.address })) {
			return round, true
		}
	}
	return 0, false
}

// back waits until members who were hurt take part again, and holds them and the round of the fault to the rules'
// deadlines.
func (j *job) back(what string, who ...*process) {
	j.t.Helper()
	s := j.after(0)
	height := j.height
	for _, p := range who {
		var at uint32
		j.until(p.name+" to take part again", func(run.State) bool {
			round, ok := j.partakes(p, s.Round)
			at = round
			return ok
		})
		took, most := j.attested(at)-height, j.absence(s, p.address)
		j.note("%s: %s in round %d, there again in round %d; %d rounds after the fault, and %d of at most %d blocks after "+
			"its return, it takes part", p.name, what, j.hurt+1, s.Round+1, at-j.hurt, took, most)
		if took > most {
			j.t.Errorf("%s: %d blocks from its return to its next part in a checkpoint, the rules give it %d", p.name, took,
				most)
		}
	}
	j.endured()
}

// endured holds the round of the fault to its bound.
func (j *job) endured() {
	j.t.Helper()
	if j.run(j.id).Round <= j.hurt {
		j.until("the end of the round of the fault", func(s run.State) bool { return s.Round > j.hurt })
	}
	took := j.attested(j.hurt+1) - j.hurtAt
	j.note("round %d was over %d of at most %d blocks after the fault", j.hurt+1, took, j.within)
	if took > j.within {
		j.t.Errorf("round %d was over %d blocks after the fault, the rules say %d", j.hurt+1, took, j.within)
	}
}

// expect checks that the receipts at the end of the unit that a worker had when the fault happened contain one with
// one of these reasons.
func (j *job) expect(p *process, reasons ...string) {
	round := j.hurt
	j.paid = append(j.paid, func(receipts []reward.Receipt) {
		j.t.Helper()
		var got []string
		for _, r := range receipts {
			if r.Kind == reward.Work && r.Who == p.address && r.Round == round {
				got = append(got, r.Reason)
			}
		}
		if !slices.ContainsFunc(got, func(why string) bool { return slices.Contains(reasons, why) }) {
			j.t.Errorf("%s has receipts %q for its work of round %d, wanted %q", p.name, got, round+1, reasons)
		}
	})
}
