// Package delegate bounds what the keys of machines may sign: the work and the duties of a machine, and nothing that
// moves money or lets another account do so. A message that is not listed here is refused, whichever module it is of.
package delegate

import (
	"context"
	"errors"
	"fmt"
	"time"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"
	"github.com/cosmos/cosmos-sdk/x/feegrant"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	registryx "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/fleet"
)

// Works reports whether the key of a machine may sign messages of a kind.
func Works(m sdk.Msg) bool {
	switch m.(type) {
	case *registrypb.MsgRegister, *registrypb.MsgUpdateAddresses, *registrypb.MsgHeartbeat, *registrypb.MsgAskMeasure,
		*registrypb.MsgAnswerMeasure, *registrypb.MsgCheckMeasure, *registrypb.MsgOpenMeasure,
		*registrypb.MsgSubmitQuote, *marketpb.MsgOffer, *rewardpb.MsgReport,
		*trainingpb.MsgCommit, *trainingpb.MsgPass, *trainingpb.MsgReport, *trainingpb.MsgSuspect,
		*trainingpb.MsgMissing, *trainingpb.MsgSealSlice, *trainingpb.MsgAttest, *trainingpb.MsgLeave,
		*trainingpb.MsgReturn, *trainingpb.MsgProve, *trainingpb.MsgChallenge, *trainingpb.MsgRefute:
		return true
	}
	return Answers(m)
}

// Answers reports whether a machine may still sign messages of a kind once it was revoked: those that answer for the
// work it did before. Without them it would lose stake by silence.
func Answers(m sdk.Msg) bool {
	switch m.(type) {
	case *trainingpb.MsgMove, *trainingpb.MsgUnseal, *trainingpb.MsgUnmask, *trainingpb.MsgConfess,
		*trainingpb.MsgShowReport, *trainingpb.MsgShowSlice:
		return true
	}
	return false
}

// Participants are the participants of the network.
type Participants interface {
	Get(ctx context.Context, id string) (registry.Participant, error)
}

// Restricts refuses transactions that the key of a machine signs or pays for, and that hold another message than its
// work.
type Restricts struct{ Participants Participants }

// AnteHandle implements sdk.AnteDecorator.
func (r Restricts) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	signed, ok := tx.(authsigning.SigVerifiableTx)
	if !ok {
		return ctx, sdkerrors.ErrTxDecode.Wrap("it is not signed")
	}
	signers, err := signed.GetSigners()
	if err != nil {
		return ctx, err
	}
	free := ctx.WithGasMeter(storetypes.NewInfiniteGasMeter())
	for _, signer := range signers {
		p, err := r.Participants.Get(free, sdk.AccAddress(signer).String())
		if errors.Is(err, registryx.ErrUnknown) {
			continue
		}
		if err == nil {
			err = Refuses(p, tx.GetMsgs())
		}
		if err != nil {
			return ctx, registryx.ErrorTable.Wrap(err)
		}
	}
	return next(ctx, tx, simulate)
}

// Refuses returns why a participant may not sign messages.
func Refuses(p registry.Participant, msgs []sdk.Msg) error {
	if p.Machine.Owner == "" {
		return nil
	}
	may := Works
	if p.Machine.Revoked > 0 {
		may = Answers
	}
	for _, m := range msgs {
		if may(m) {
			continue
		}
		if p.Machine.Revoked > 0 {
			return fmt.Errorf("%w: %s was revoked in block %d, and answers for earlier work alone, not with %s",
				fleet.ErrMachine, p.ID, p.Machine.Revoked, sdk.MsgTypeURL(m))
		}
		return fmt.Errorf("%w: %s works for %s, whose key alone signs %s", fleet.ErrMachine, p.ID, p.Machine.Owner,
			sdk.MsgTypeURL(m))
	}
	return nil
}

// Allowances are the allowances of the SDK, which its module feegrant keeps.
type Allowances interface {
	GetAllowance(ctx context.Context, granter, grantee sdk.AccAddress) (feegrant.FeeAllowanceI, error)
	GrantAllowance(ctx context.Context, granter, grantee sdk.AccAddress, a feegrant.FeeAllowanceI) error
	UpdateAllowance(ctx context.Context, granter, grantee sdk.AccAddress, a feegrant.FeeAllowanceI) error
}

// Fees pays for machines from the accounts of their owners, by allowances of the SDK.
type Fees struct{ Allowances }

// day is the period of an allowance.
const day = 24 * time.Hour

// Allow implements fleets.Fees.
func (f Fees) Allow(ctx context.Context, owner, machine sdk.AccAddress, daily uint64) error {
	now, amount := sdk.UnwrapSDKContext(ctx).BlockTime(), adapter.Coins(daily)
	return f.grant(ctx, owner, machine, &feegrant.PeriodicAllowance{Period: day, PeriodSpendLimit: amount,
		PeriodCanSpend: amount, PeriodReset: now.Add(day)})
}

// Limit implements fleets.Fees.
func (f Fees) Limit(ctx context.Context, owner, machine sdk.AccAddress, last uint64) error {
	return f.grant(ctx, owner, machine, &feegrant.BasicAllowance{SpendLimit: adapter.Coins(last)})
}

func (f Fees) grant(ctx context.Context, owner, machine sdk.AccAddress, a feegrant.FeeAllowanceI) error {
	if old, err := f.GetAllowance(ctx, owner, machine); err == nil && old != nil {
		return f.UpdateAllowance(ctx, owner, machine, a)
	}
	return f.GrantAllowance(ctx, owner, machine, a)
}
