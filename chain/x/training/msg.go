package training

import (
	"context"
	"fmt"

	"cosmossdk.io/collections"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/training/handovers"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/chain/x/training/turn"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// rule is one transition of a run.
type rule func(s run.State, env transition.Env) (run.State, []event.Event, error)

// messages implements trainingpb.MsgServer over a keeper.
type messages struct{ *Keeper }

// step applies a rule to a run. If the rule returns an error, the run stays as it was.
func (k *Keeper) step(ctx context.Context, job string, rule rule) error {
	s, err := k.State(ctx, job)
	if err != nil {
		return ErrorTable.Wrap(err)
	}
	env, failed, err := k.env(ctx, job)
	if err != nil {
		return err
	}
	after, events, err := rule(s, env)
	if err != nil {
		return ErrorTable.Wrap(err)
	}
	if err := failed(); err != nil {
		return err
	}
	return k.apply(ctx, s, after, events)
}

// Commit implements trainingpb.MsgServer.
func (k messages) Commit(ctx context.Context, m *trainingpb.MsgCommit) (*trainingpb.MsgCommitResponse, error) {
	commitment, err := m.Commitment.Rule()
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(turn.UnitGas, "the end of its round")
	err = k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
		return handovers.Commit(s, env, m.Sender, unitID(m), commitment)
	})
	if err != nil {
		return nil, err
	}
	return &trainingpb.MsgCommitResponse{}, k.rewards.Committed(ctx, m.Sender, commitment.Bytes)
}

// Pass implements trainingpb.MsgServer.
func (k messages) Pass(ctx context.Context, m *trainingpb.MsgPass) (*trainingpb.MsgPassResponse, error) {
	seal, err := runpb.Digest(m.Seal)
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("seal: %w", err))
	}
	err = k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
		return s.Pass(env, m.Sender, unitID(m), seal)
	})
	if err != nil {
		return nil, err
	}
	key := collections.Join4(m.Job, m.Round, uint64(m.Unit)<<32|uint64(m.Attempt), m.Sender)
	return &trainingpb.MsgPassResponse{}, k.seals.Set(ctx, key, seal[:])
}

// Unseal implements trainingpb.MsgServer.
func (k messages) Unseal(ctx context.Context, m *trainingpb.MsgUnseal) (*trainingpb.MsgUnsealResponse, error) {
	opening, err := audit.DecodeOpening(m.Opening)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &trainingpb.MsgUnsealResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			return s.Unseal(env, m.Sender, unitID(m), opening, k.rooting)
		})
}

// Report implements trainingpb.MsgServer.
func (k messages) Report(ctx context.Context, m *trainingpb.MsgReport) (*trainingpb.MsgReportResponse, error) {
	seal, err := runpb.Digest(m.Seal)
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("seal: %w", err))
	}
	return &trainingpb.MsgReportResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			return s.Report(env, m.Sender, unitID(m), seal, m.Outside)
		})
}

// ShowReport implements trainingpb.MsgServer.
func (k messages) ShowReport(ctx context.Context,
	m *trainingpb.MsgShowReport) (*trainingpb.MsgShowReportResponse, error) {
	end, err := runpb.Digest(m.End)
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("end: %w", err))
	}
	salt, err := runpb.Digest(m.Salt)
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("salt: %w", err))
	}
	f := audit.Finding{DistancePPM: m.DistancePPM, CosinePPM: m.CosinePPM, End: end}
	return &trainingpb.MsgShowReportResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			return s.ShowReport(env, m.Sender, unitID(m), f, salt)
		})
}

// Unmask implements trainingpb.MsgServer. It closes the disputes about the unit without a verdict.
func (k messages) Unmask(ctx context.Context, m *trainingpb.MsgUnmask) (*trainingpb.MsgUnmaskResponse, error) {
	nonce, err := runpb.Digest(m.Nonce)
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("nonce: %w", err))
	}
	segments, err := runpb.Digests(m.Segments)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &trainingpb.MsgUnmaskResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			return s.RevealPlantedFault(env, m.Sender, unitID(m), nonce, segments)
		})
}

// Confess implements trainingpb.MsgServer.
func (k messages) Confess(ctx context.Context, m *trainingpb.MsgConfess) (*trainingpb.MsgConfessResponse, error) {
	return &trainingpb.MsgConfessResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			return s.Confess(env, m.Sender, unitID(m))
		})
}

// Suspect implements trainingpb.MsgServer.
func (k messages) Suspect(ctx context.Context, m *trainingpb.MsgSuspect) (*trainingpb.MsgSuspectResponse, error) {
	return &trainingpb.MsgSuspectResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			return s.Suspect(env, m.Sender, unitID(m))
		})
}

// Missing implements trainingpb.MsgServer.
func (k messages) Missing(ctx context.Context, m *trainingpb.MsgMissing) (*trainingpb.MsgMissingResponse, error) {
	return &trainingpb.MsgMissingResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			return run.Unavailable(s, env, m.Sender, unitID(m), m.Slice, m.Data)
		})
}

// SealSlice implements trainingpb.MsgServer.
func (k messages) SealSlice(ctx context.Context, m *trainingpb.MsgSealSlice) (*trainingpb.MsgSealSliceResponse, error) {
	seal, err := runpb.Digest(m.Seal)
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("seal: %w", err))
	}
	return &trainingpb.MsgSealSliceResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			return s.SealSlice(env, m.Sender, m.Round, m.Closed, m.Slice, seal)
		})
}

// ShowSlice implements trainingpb.MsgServer.
func (k messages) ShowSlice(ctx context.Context, m *trainingpb.MsgShowSlice) (*trainingpb.MsgShowSliceResponse, error) {
	return &trainingpb.MsgShowSliceResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			return s.ShowSlice(env, m.Sender, m.Round, m.Closed, m.Slice, m.CID)
		})
}

// Attest implements trainingpb.MsgServer.
func (k messages) Attest(ctx context.Context, m *trainingpb.MsgAttest) (*trainingpb.MsgAttestResponse, error) {
	root, err := runpb.Digest(m.Root)
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("state root: %w", err))
	}
	key, err := k.publicKey(ctx, m.Sender)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	vote := progress.Vote{
		Member: m.Sender, Next: terms.Checkpoint{Round: m.Round + 1, Root: root, CID: m.CID},
		PublicKey: key.Key, Signature: m.Signature,
	}
	return &trainingpb.MsgAttestResponse{},
		k.step(ctx, m.Job, func(s run.State, env transition.Env) (run.State, []event.Event, error) {
			after, events, err := s.Attest(env, m.Round, vote)
			if err != nil {
				return s, nil, err
			}
			// The signature is checked only after Attest has accepted the checkpoint.
			digest := s.Attestation(vote.Next).Digest()
			if !key.VerifySignature(digest[:], m.Signature) {
				return s, nil, fmt.Errorf("%w: round %d of %s", ErrSignature, m.Round, m.Job)
			}
			return after, events, nil
		})
}

// publicKey returns the public key of an account, which is known once the account has signed a transaction.
func (k messages) publicKey(ctx context.Context, account string) (*secp256k1.PubKey, error) {
	address, err := sdk.AccAddressFromBech32(account)
	if err != nil {
		return nil, err
	}
	a := k.accounts.GetAccount(ctx, address)
	if a == nil {
		return nil, fmt.Errorf("%w: no account %s", ErrSignature, account)
	}
	key, ok := a.GetPubKey().(*secp256k1.PubKey)
	if !ok {
		return nil, fmt.Errorf("%w: %s has no secp256k1 key", ErrSignature, account)
	}
	return key, nil
}

// unitID returns the attempt at a unit that a message is about.
func unitID(m interface {
	GetRound() uint32
	GetUnit() uint32
	GetAttempt() uint32
}) work.UnitID {
	return work.UnitID{Round: m.GetRound(), Unit: m.GetUnit(), Attempt: m.GetAttempt()}
}

// disputed returns the unit that a dispute is about.
func disputed(c dispute.Config) work.UnitID {
	return work.UnitID{Round: c.Round, Unit: c.Unit, Attempt: c.Attempt}
}
