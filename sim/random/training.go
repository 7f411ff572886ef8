package random

import (
	"slices"

	"github.com/cosmos/cosmos-sdk/testutil/simsx"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/sealed"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/sim/random/draw"
)

var trainingProposals = []simsx.SimMsgFactoryX{governed(func(d draw.Source, by string) *trainingpb.MsgUpdateParams {
	return &trainingpb.MsgUpdateParams{Authority: by,
		Params: trainingpb.Params{SlashPpm: uint32(1 + d.Intn(1_000_000)), BountyPpm: uint32(d.Intn(900_000)),
			UnopenedPpm: uint32(d.Intn(1_000_000)), MemoryBlocks: int64(d.Intn(1000))}}
})}

var ofTraining = []saying{
	{weight: 400, of: &trainingpb.MsgCommit{}, say: duty((*msgFactory).commit)},
	{weight: 200, of: &trainingpb.MsgPass{}, say: duty((*msgFactory).pass)},
	{weight: 200, of: &trainingpb.MsgUnseal{}, say: duty((*msgFactory).unseal)},
	{weight: 400, of: &trainingpb.MsgAttest{}, say: duty((*msgFactory).attest)},
	{weight: 40, of: &trainingpb.MsgProve{}, say: duty((*msgFactory).prove)},
	{weight: 120, of: &trainingpb.MsgSealSlice{}, say: duty((*msgFactory).slice)},
	{weight: 30, of: &trainingpb.MsgReport{}, say: duty((*msgFactory).report)},
	{weight: 30, of: &trainingpb.MsgShowReport{}, say: duty((*msgFactory).showReport)},
	{weight: 30, of: &trainingpb.MsgUnmask{}, say: duty((*msgFactory).unmask)},
	{weight: 8, of: &trainingpb.MsgConfess{}, say: duty((*msgFactory).confess)},
	{weight: 8, of: &trainingpb.MsgMissing{}, say: duty((*msgFactory).missing)},
	{weight: 8, of: &trainingpb.MsgSuspect{}, say: duty((*msgFactory).suspect)},
	{weight: 8, of: &trainingpb.MsgLeave{},
		say: duty(func(x *msgFactory, s run.State) error { return x.Work.Leave(x.ctx, s.Terms.Job) })},
	{weight: 2, of: &trainingpb.MsgLeave{}, say: duty(func(x *msgFactory, s run.State) error {
		if !s.MayDecline(x.Address()) {
			return nil
		}
		return x.Work.Decline(x.ctx, s.Terms.Job)
	})},
	{weight: 15, of: &trainingpb.MsgReturn{}, say: duty(func(x *msgFactory, s run.State) error {
		if !s.MayReturn(x.Address(), x.ctx.BlockHeight()) {
			return nil
		}
		return x.Work.Return(x.ctx, s.Terms.Job)
	})},
	{weight: 2, of: &trainingpb.MsgChallenge{}, say: duty(func(x *msgFactory, s run.State) error {
		if len(s.Units) == 0 { // a run that waits for members has none
			return nil
		}
		return x.Work.Challenge(x.ctx, s.Terms.Job, work.UnitID{Round: s.Round}, 1, s.Units[0].Commit.Digest())
	})},
}

// duty lets a member of a run speak: the first in any order who has something to say.
func duty(say func(*msgFactory, run.State) error) func(*msgFactory) error {
	return func(x *msgFactory) error {
		s, err := x.run()
		if err != nil {
			return err
		}
		return untilSaid(x, s.Members, func(m crew.Member) error {
			if !x.as(m.ID) {
				return nil
			}
			return say(x, s)
		})
	}
}

// executed is the state of a unit at the end of a segment, the last of its numbers: a tensor of one tile that everybody
// can compute.
func executed(s run.State, numbers ...uint32) *sealed.State {
	t := tensor.New(tensor.Make(tensor.Uint8, 64))
	of := canon.Hash("random/work", []any{s.Terms.Job, numbers})
	copy(t.Bytes(), of[:])
	return sealed.New(numbers[len(numbers)-1], []*tensor.Tensor{t})
}

// roots of a unit: at its start, and after every segment.
func roots(s run.State, round, unit uint32) []canon.Digest {
	all := make([]canon.Digest, s.Terms.Segments+1)
	for i := range all {
		w := executed(s, round, unit, uint32(i))
		all[i] = train.StateRoot(w.Step(), w.Roots())
	}
	return all
}

// nonce of the hidden roots of commitments.
var nonce = canon.Sum("random/nonce")

// commit commits to a unit: to its states, now and then with a planted fault, or to a lie.
func (x *msgFactory) commit(s run.State) error {
	units := s.Work(x.Address())
	if len(units) == 0 {
		return nil
	}
	u := draw.Pick(x.Source, units)
	c := work.Commitment{Segments: roots(s, s.Round, u.Index), Update: canon.Sum("update"), UpdateCID: "update",
		Bytes: x.Below(1 << 30), Loss: x.Int63n(10_000_000)}
	c.HiddenRoots = audit.Hide(nonce, c.Segments)
	switch {
	case x.Often(3):
		c.Segments = audit.Plant(nonce, c.Segments)
	case x.Often(2):
		c.Segments[x.Intn(len(c.Segments))] = canon.Sum("a lie")
	}
	return x.Work.Commit(x.ctx, s.Terms.Job, u.ID(s.Round), c)
}

// unmask shows a fault that the worker planted, once it was passed over.
func (x *msgFactory) unmask(s run.State) error {
	for _, l := range s.All() {
		for _, u := range l.Units {
			right := roots(s, l.Round, u.Index)
			if u.Worker == x.Address() && u.Status != work.Assigned && !u.Commit.HiddenRoots.IsZero() &&
				slices.Equal(u.Commit.Segments, audit.Plant(nonce, right)) {
				return x.Work.Unmask(x.ctx, s.Terms.Job, u.ID(l.Round), nonce, right)
			}
		}
	}
	return nil
}

// confess says that a commitment is wrong, whether it is or not.
func (x *msgFactory) confess(s run.State) error {
	for _, u := range s.Units {
		if s.Confessible() && u.Worker == x.Address() && u.Status == work.Committed {
			return x.Work.Confess(x.ctx, s.Terms.Job, u.ID(s.Round))
		}
	}
	return nil
}

// another is a unit of the round that another account committed to.
func (x *msgFactory) another(s run.State) *work.Unit {
	for _, u := range draw.Mixed(x.Source, s.Units) {
		if u.Worker != x.Address() && u.Status != work.Assigned {
			return u
		}
	}
	return nil
}

// missing says that an update does not come.
func (x *msgFactory) missing(s run.State) error {
	u := x.another(s)
	if u == nil || s.Phase != progress.Attest && s.Phase != progress.Reduce {
		return nil
	}
	return x.Work.Missing(x.ctx, s.Terms.Job, u.ID(s.Round), 0, false)
}

// suspect says that an update is odd.
func (x *msgFactory) suspect(s run.State) error {
	u := x.another(s)
	if u == nil {
		return nil
	}
	return x.Work.Suspect(x.ctx, s.Terms.Job, u.ID(s.Round))
}

// report measures how far an update of a run with a tolerance is from the exact one.
func (x *msgFactory) report(s run.State) error {
	for _, d := range s.Audits(x.Address()) {
		if s.Tolerant(d.Unit) {
			f, salt := x.finding(s, d.Round, d.Unit)
			outside := !s.Terms.Tolerance.Holds(f.DistancePPM, f.CosinePPM)
			return x.Work.Report(x.ctx, s.Terms.Job, d.ID(), f.Seal(d.ID().Subject(x.Address(), s.Terms.Job, 0), salt), outside)
		}
	}
	return nil
}

// showReport shows a report.
func (x *msgFactory) showReport(s run.State) error {
	for _, u := range s.Units {
		if u.OwesFigures(x.Address()) {
			f, salt := x.finding(s, s.Round, *u)
			return x.Work.ShowReport(x.ctx, s.Terms.Job, u.ID(s.Round), f, salt)
		}
	}
	return nil
}

// finding is what the account says of a tolerant unit: now and then something else than others.
func (x *msgFactory) finding(s run.State, round uint32, u work.Unit) (f audit.Finding, salt canon.Digest) {
	say := canon.Sum("random/finding", []byte(s.Terms.Job), []byte{byte(round), byte(u.Index), byte(u.Attempt)})
	if mine := canon.Sum("random/mine", say[:], []byte(x.Address())); mine[0] < 32 {
		say = mine
	}
	subject := audit.Subject{Job: s.Terms.Job, Round: round, Unit: u.Index, Segment: s.Terms.SegmentsOf(u.Index)}
	w := end(s, subject)
	return audit.Finding{DistancePPM: 600 * uint32(say[1]), CosinePPM: 990_000,
		End: train.StateRoot(w.Step(), w.Roots())}, audit.Salt(say, subject)
}

// pass passes an audit, now and then without a look.
func (x *msgFactory) pass(s run.State) error {
	due := slices.DeleteFunc(s.Audits(x.Address()), func(d work.AuditTarget) bool { return s.Tolerant(d.Unit) })
	if len(due) == 0 {
		return nil
	}
	d := draw.Pick(x.Source, due)
	subject := s.Subject(d.Round, d.Unit)
	seal := audit.NewSeal(subject, end(s, subject).Trees()).Root()
	if x.Often(3) {
		seal = canon.Sum("a seal of nothing")
	}
	return x.Work.Pass(x.ctx, s.Terms.Job, d.ID(), seal)
}

// end is the state that a seal of a unit is about.
func end(s run.State, subject audit.Subject) *sealed.State {
	segment := subject.Segment
	if segment == 0 || segment > s.Terms.Segments {
		segment = s.Terms.Segments
	}
	return executed(s, subject.Round, subject.Unit, segment)
}

// unseal opens a seal where it is asked: that of an audit, or of a probation task.
func (x *msgFactory) unseal(s run.State) error {
	var open []audit.Subject
	var questions []canon.Digest
	for _, l := range s.All() {
		for _, u := range l.Units {
			if u.Status == work.Sealed && !u.Question.IsZero() && u.Verifier == x.Address() {
				open, questions = append(open, s.Subject(l.Round, *u)), append(questions, u.Question)
			}
		}
	}
	if t, ok := s.Probation(x.Address()); ok && !t.Question.IsZero() {
		open, questions = append(open, s.ProbationSubject(t)), append(questions, t.Question)
	}
	if len(open) == 0 {
		return nil
	}
	i := x.Intn(len(open))
	w := end(s, open[i])
	o, err := audit.NewSeal(open[i], w.Trees()).Open(questions[i], w)
	if err != nil {
		return err
	}
	return x.Work.Unseal(x.ctx, s.Terms.Job, work.UnitID{Round: open[i].Round, Unit: open[i].Unit,
		Attempt: open[i].Attempt}, o)
}

// prove answers the probation task of a newcomer.
func (x *msgFactory) prove(s run.State) error {
	t, ok := s.Probation(x.Address())
	if !ok || t.Task.Worker == "" || !t.Seal.IsZero() {
		return nil
	}
	subject := s.ProbationSubject(t)
	return x.Work.Prove(x.ctx, s.Terms.Job, t.Task.ID(), audit.NewSeal(subject, end(s, subject).Trees()).Root())
}

// slice seals a slice of a round, or shows it.
func (x *msgFactory) slice(s run.State) error {
	const cid = "slice"
	for i := range s.Slices {
		switch s.Owes(x.Address(), i) {
		case progress.OwesSeal:
			return x.Work.SealSlice(x.ctx, s.Terms.Job, s.Round, s.Closed, uint32(i), s.SliceSeal(x.Address(), uint32(i), cid))
		case progress.OwesCID:
			return x.Work.ShowSlice(x.ctx, s.Terms.Job, s.Round, s.Closed, uint32(i), cid)
		}
	}
	return nil
}

// attest signs the next checkpoint, on which all agree.
func (x *msgFactory) attest(s run.State) error {
	m, _ := s.Member(x.Address())
	if !s.Attestable() || !m.Active || s.Voted(m.ID) {
		return nil
	}
	next := terms.Checkpoint{Round: s.Round + 1, Root: canon.Hash("random/checkpoint", []any{s.Terms.Job, s.Round + 1}),
		CID: "checkpoint"}
	return x.Work.Attest(x.ctx, s.Attestation(next))
}
