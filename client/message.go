package client

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
)

// Each method below submits one message and returns when it is in a block, or with the reason why it was refused.

func (c *Client) send(ctx context.Context, m sdk.Msg) error {
	_, err := c.Submit(ctx, m)
	return err
}

// Commit binds the account to its result for an attempt at a unit.
func (c *Client) Commit(ctx context.Context, job string, id run.UnitID, commitment run.Commitment) error {
	return c.send(ctx, &trainingpb.MsgCommit{
		Sender: c.Address(), Job: job, Round: id.Round, Unit: id.Unit, Attempt: id.Attempt,
		Commitment: runpb.FromCommitment(commitment),
	})
}

// Pass answers an audit: the commitment is right.
func (c *Client) Pass(ctx context.Context, job string, id run.UnitID, seal canon.Digest) error {
	return c.send(ctx, &trainingpb.MsgPass{Sender: c.Address(), Job: job, Round: id.Round, Unit: id.Unit,
		Attempt: id.Attempt, Seal: seal[:]})
}

// Unseal opens the seal with which an audit was answered.
func (c *Client) Unseal(ctx context.Context, job string, id run.UnitID, o audit.Opening) error {
	return c.send(ctx, &trainingpb.MsgUnseal{Sender: c.Address(), Job: job, Round: id.Round, Unit: id.Unit,
		Attempt: id.Attempt, Opening: o.Encode()})
}

// Unmask shows that the account planted a fault in a commitment: what it hid the right state roots under, and these.
func (c *Client) Unmask(ctx context.Context, job string, id run.UnitID, nonce canon.Digest,
	segments []canon.Digest) error {
	return c.send(ctx, &trainingpb.MsgUnmask{
		Sender: c.Address(), Job: job, Round: id.Round, Unit: id.Unit, Attempt: id.Attempt, Nonce: nonce[:],
		Segments: runpb.FromDigests(segments),
	})
}

// Confess says that the account finds its own commitment wrong.
func (c *Client) Confess(ctx context.Context, job string, id run.UnitID) error {
	return c.send(ctx, &trainingpb.MsgConfess{Sender: c.Address(), Job: job, Round: id.Round, Unit: id.Unit,
		Attempt: id.Attempt})
}

// Report answers the audit of a tolerant unit with the seal of an audit.Finding, and says whether that is outside the
// tolerance.
func (c *Client) Report(ctx context.Context, job string, id run.UnitID, seal canon.Digest, outside bool) error {
	return c.send(ctx, &trainingpb.MsgReport{
		Sender: c.Address(), Job: job, Round: id.Round, Unit: id.Unit, Attempt: id.Attempt, Seal: seal[:], Outside: outside,
	})
}

// ShowReport shows what a report is bound to.
func (c *Client) ShowReport(ctx context.Context, job string, id run.UnitID, f audit.Finding, salt canon.Digest) error {
	return c.send(ctx, &trainingpb.MsgShowReport{
		Sender: c.Address(), Job: job, Round: id.Round, Unit: id.Unit, Attempt: id.Attempt, DistancePPM: f.DistancePPM,
		CosinePPM: f.CosinePPM,
		End:       f.End[:], Salt: salt[:],
	})
}

// Suspect reports that the update of a unit is odd beside the others of its round.
func (c *Client) Suspect(ctx context.Context, job string, id run.UnitID) error {
	return c.send(ctx, &trainingpb.MsgSuspect{Sender: c.Address(), Job: job, Round: id.Round, Unit: id.Unit,
		Attempt: id.Attempt})
}

// Challenge answers an audit, or speaks up without one: the state root of a segment is the first that is wrong in the
// commitment with a digest.
func (c *Client) Challenge(ctx context.Context, job string, id run.UnitID, segment uint32,
	commitment canon.Digest) error {
	return c.send(ctx, &trainingpb.MsgChallenge{
		Sender: c.Address(), Job: job, Round: id.Round, Unit: id.Unit, Attempt: id.Attempt, Segment: segment,
		Commitment: commitment[:],
	})
}

// Refute shows that an attested checkpoint of an open round is not what the updates of its round lead to.
func (c *Client) Refute(ctx context.Context, job string, wrong run.Checkpoint, shown []byte) error {
	return c.send(ctx, &trainingpb.MsgRefute{
		Sender: c.Address(), Job: job, Checkpoint: wrong.Round, Root: wrong.Root[:], Shown: shown,
	})
}

// Move makes a move in the dispute that is being played about an attempt at a unit.
func (c *Client) Move(ctx context.Context, job string, id run.UnitID, m dispute.Move) error {
	return c.send(ctx, &trainingpb.MsgMove{Sender: c.Address(), Job: job, Round: id.Round, Unit: id.Unit,
		Attempt: id.Attempt, Body: m.Encode()})
}

// Missing reports that the update of a unit, or the slice of it that the account needs, cannot be fetched.
func (c *Client) Missing(ctx context.Context, job string, id run.UnitID, slice uint32) error {
	return c.send(ctx, &trainingpb.MsgMissing{Sender: c.Address(), Job: job, Round: id.Round, Unit: id.Unit,
		Attempt: id.Attempt, Slice: slice})
}

// SealSlice binds the account to what it computed for a slice of the checkpoint after a round whose last commitment is
// in the block closed. The seal is run.State.SliceSeal.
func (c *Client) SealSlice(ctx context.Context, job string, round uint32, closed int64, slice uint32,
	seal canon.Digest) error {
	return c.send(ctx, &trainingpb.MsgSealSlice{Sender: c.Address(), Job: job, Round: round, Closed: closed, Slice: slice,
		Seal: seal[:]})
}

// ShowSlice says what a slice is.
func (c *Client) ShowSlice(ctx context.Context, job string, round uint32, closed int64, slice uint32,
	cid string) error {
	return c.send(ctx, &trainingpb.MsgShowSlice{Sender: c.Address(), Job: job, Round: round, Closed: closed, Slice: slice,
		CID: cid})
}

// Attest signs and submits the checkpoint after the current round. What is signed is run.State.Attestation.
func (c *Client) Attest(ctx context.Context, a run.Attestation) error {
	digest := a.Digest()
	signature, err := c.signer.Sign(digest[:])
	if err != nil {
		return err
	}
	return c.send(ctx, &trainingpb.MsgAttest{
		Sender: c.Address(), Job: a.Job, Round: a.Checkpoint.Round - 1,
		Root: a.Checkpoint.Root[:], CID: a.Checkpoint.CID, Signature: signature,
	})
}

// Leave ends the account's part in a run in good standing.
func (c *Client) Leave(ctx context.Context, job string) error {
	return c.send(ctx, &trainingpb.MsgLeave{Sender: c.Address(), Job: job})
}

// Decline ends the account's part in a run whose job it cannot open.
func (c *Client) Decline(ctx context.Context, job string) error {
	return c.send(ctx, &trainingpb.MsgLeave{Sender: c.Address(), Job: job, CannotOpen: true})
}

// Return says that the account, which is out of a run over missed deadlines, is back.
func (c *Client) Return(ctx context.Context, job string) error {
	return c.send(ctx, &trainingpb.MsgReturn{Sender: c.Address(), Job: job})
}

// Prove answers the account's exam with the seal of the state that it reached; zero if that is not the committed one.
func (c *Client) Prove(ctx context.Context, job string, id run.UnitID, seal canon.Digest) error {
	return c.send(ctx, &trainingpb.MsgProve{Sender: c.Address(), Job: job, Round: id.Round, Unit: id.Unit,
		Attempt: id.Attempt, Seal: seal[:]})
}
