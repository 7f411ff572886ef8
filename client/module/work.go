package module

import (
	"context"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// Work sends x/training what a member of a run says, and what guests of a run do. Each method submits one message and
// returns when it is in a block, or with the reason why it was refused.
type Work struct{ account Account }

// Commit binds the account to its result for an attempt at a unit.
func (w Work) Commit(ctx context.Context, job string, id work.UnitID, commitment work.Commitment) error {
	return send(ctx, w.account, &trainingpb.MsgCommit{
		Sender: w.account.Address(), Job: job, Round: id.Round, Unit: id.Unit, Attempt: id.Attempt,
		Commitment: runpb.FromCommitment(commitment),
	})
}

// Pass answers an audit: the commitment is right.
func (w Work) Pass(ctx context.Context, job string, id work.UnitID, seal canon.Digest) error {
	return send(ctx, w.account, &trainingpb.MsgPass{Sender: w.account.Address(), Job: job, Round: id.Round, Unit: id.Unit,
		Attempt: id.Attempt, Seal: seal[:]})
}

// Unseal opens the seal with which an audit was answered.
func (w Work) Unseal(ctx context.Context, job string, id work.UnitID, o audit.Opening) error {
	return send(ctx, w.account, &trainingpb.MsgUnseal{Sender: w.account.Address(), Job: job, Round: id.Round,
		Unit: id.Unit, Attempt: id.Attempt, Opening: o.Encode()})
}

// Unmask shows that the account planted a fault in a commitment: what it hid the right state roots under, and these.
func (w Work) Unmask(ctx context.Context, job string, id work.UnitID, nonce canon.Digest,
	segments []canon.Digest) error {
	return send(ctx, w.account, &trainingpb.MsgUnmask{
		Sender: w.account.Address(), Job: job, Round: id.Round, Unit: id.Unit, Attempt: id.Attempt, Nonce: nonce[:],
		Segments: runpb.FromDigests(segments),
	})
}

// Confess says that the account finds its own commitment wrong.
func (w Work) Confess(ctx context.Context, job string, id work.UnitID) error {
	return send(ctx, w.account, &trainingpb.MsgConfess{Sender: w.account.Address(), Job: job, Round: id.Round,
		Unit: id.Unit, Attempt: id.Attempt})
}

// Report answers the audit of a tolerant unit with the seal of an audit.Finding, and says whether that is outside the
// tolerance.
func (w Work) Report(ctx context.Context, job string, id work.UnitID, seal canon.Digest, outside bool) error {
	return send(ctx, w.account, &trainingpb.MsgReport{
		Sender: w.account.Address(), Job: job, Round: id.Round, Unit: id.Unit, Attempt: id.Attempt, Seal: seal[:],
		Outside: outside,
	})
}

// ShowReport shows what a report is bound to.
func (w Work) ShowReport(ctx context.Context, job string, id work.UnitID, f audit.Finding, salt canon.Digest) error {
	return send(ctx, w.account, &trainingpb.MsgShowReport{
		Sender: w.account.Address(), Job: job, Round: id.Round, Unit: id.Unit, Attempt: id.Attempt,
		DistancePPM: f.DistancePPM,
		CosinePPM:   f.CosinePPM,
		End:         f.End[:], Salt: salt[:],
	})
}

// Suspect reports that the update of a unit is an outlier of its round.
func (w Work) Suspect(ctx context.Context, job string, id work.UnitID) error {
	return send(ctx, w.account, &trainingpb.MsgSuspect{Sender: w.account.Address(), Job: job, Round: id.Round,
		Unit: id.Unit, Attempt: id.Attempt})
}

// Challenge answers an audit, or challenges a unit without one: the state root of a segment is the first that is wrong
// in the commitment with this digest.
func (w Work) Challenge(ctx context.Context, job string, id work.UnitID, segment uint32,
	commitment canon.Digest) error {
	return send(ctx, w.account, &trainingpb.MsgChallenge{
		Sender: w.account.Address(), Job: job, Round: id.Round, Unit: id.Unit, Attempt: id.Attempt, Segment: segment,
		Commitment: commitment[:],
	})
}

// Refute shows that an attested checkpoint of an open round is not what the updates of its round lead to.
func (w Work) Refute(ctx context.Context, job string, wrong terms.Checkpoint, shown []byte) error {
	return send(ctx, w.account, &trainingpb.MsgRefute{
		Sender: w.account.Address(), Job: job, Checkpoint: wrong.Round, Root: wrong.Root[:], Shown: shown,
	})
}

// Move makes a move in the dispute that is being played about an attempt at a unit.
func (w Work) Move(ctx context.Context, job string, id work.UnitID, m dispute.Move) error {
	return send(ctx, w.account, &trainingpb.MsgMove{Sender: w.account.Address(), Job: job, Round: id.Round, Unit: id.Unit,
		Attempt: id.Attempt, Body: m.Encode()})
}

// Missing reports that the update of a unit, the slice of it that the account needs, or the data of its round (data)
// cannot be fetched.
func (w Work) Missing(ctx context.Context, job string, id work.UnitID, slice uint32, data bool) error {
	return send(ctx, w.account, &trainingpb.MsgMissing{Sender: w.account.Address(), Job: job, Round: id.Round,
		Unit: id.Unit, Attempt: id.Attempt, Slice: slice, Data: data})
}

// SealSlice binds the account to its result for a slice of the checkpoint after a round whose last commitment is in
// the block closed. The seal is run.State.SliceSeal.
func (w Work) SealSlice(ctx context.Context, job string, round uint32, closed int64, slice uint32,
	seal canon.Digest) error {
	return send(ctx, w.account, &trainingpb.MsgSealSlice{Sender: w.account.Address(), Job: job, Round: round,
		Closed: closed, Slice: slice, Seal: seal[:]})
}

// ShowSlice shows the account's result for a slice.
func (w Work) ShowSlice(ctx context.Context, job string, round uint32, closed int64, slice uint32,
	cid string) error {
	return send(ctx, w.account, &trainingpb.MsgShowSlice{Sender: w.account.Address(), Job: job, Round: round,
		Closed: closed, Slice: slice, CID: cid})
}

// Attest signs run.State.Attestation, the checkpoint after the current round, and submits it.
func (w Work) Attest(ctx context.Context, a progress.Attestation) error {
	digest := a.Digest()
	signature, err := w.account.Sign(digest[:])
	if err != nil {
		return err
	}
	return send(ctx, w.account, &trainingpb.MsgAttest{
		Sender: w.account.Address(), Job: a.Job, Round: a.Checkpoint.Round - 1,
		Root: a.Checkpoint.Root[:], CID: a.Checkpoint.CID, Signature: signature,
	})
}

// Leave ends the account's part in a run in good standing.
func (w Work) Leave(ctx context.Context, job string) error {
	return send(ctx, w.account, &trainingpb.MsgLeave{Sender: w.account.Address(), Job: job})
}

// Decline ends the account's part in a run whose job it cannot open.
func (w Work) Decline(ctx context.Context, job string) error {
	return send(ctx, w.account, &trainingpb.MsgLeave{Sender: w.account.Address(), Job: job, CannotOpen: true})
}

// Return says that the account, which is out of a run over missed deadlines, is back.
func (w Work) Return(ctx context.Context, job string) error {
	return send(ctx, w.account, &trainingpb.MsgReturn{Sender: w.account.Address(), Job: job})
}

// Prove answers the account's probation task with the seal of the state that it reached; zero if that is not the
// committed one.
func (w Work) Prove(ctx context.Context, job string, id work.UnitID, seal canon.Digest) error {
	return send(ctx, w.account, &trainingpb.MsgProve{Sender: w.account.Address(), Job: job, Round: id.Round, Unit: id.Unit,
		Attempt: id.Attempt, Seal: seal[:]})
}
