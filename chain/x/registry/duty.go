package registry

import (
	"context"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Owed reports whether messages of a kind may be duties.
func Owed(m sdk.Msg) bool {
	switch m.(type) {
	case *registrypb.MsgHeartbeat, *registrypb.MsgAnswerMeasure, *registrypb.MsgCheckMeasure, *registrypb.MsgOpenMeasure,
		*registrypb.MsgSetPayee:
		return true
	}
	return false
}

// Duty reports whether a message of an account is a duty backed by its stake: the first heartbeat in a window of an
// account with a tier, the next step of a measurement by the measured account or by its checker, or the answer of a
// payee to a change by which another account would be paid.
func (k *Keeper) Duty(ctx context.Context, account string, m sdk.Msg) bool {
	now := sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter())
	switch m := m.(type) {
	case *registrypb.MsgHeartbeat:
		u, err := k.uptimes.Get(now, account)
		params, wrong := k.Params(now)
		if err == nil && wrong == nil {
			_, err = u.Heartbeat(params, now.BlockHeight()+1)
		}
		return err == nil && wrong == nil && m.Sender == account
	case *registrypb.MsgAnswerMeasure:
		at, err := k.measurements.Get(now, account)
		return err == nil && m.Sender == account && !at.Seed.IsZero() && at.Root.IsZero()
	case *registrypb.MsgCheckMeasure:
		at, err := k.measurements.Get(now, m.Participant)
		return err == nil && m.Sender == account && at.Owes(account)
	case *registrypb.MsgSetPayee:
		p, err := k.Get(now, m.Participant)
		return err == nil && m.Sender == account && p.Payee.ID == account && p.Payee.From > now.BlockHeight()
	case *registrypb.MsgOpenMeasure:
		at, err := k.measurements.Get(now, account)
		return err == nil && m.Sender == account && !at.Root.IsZero()
	}
	return false
}

// Firm returns the part of an account's stake that is not leaving, in uzen, and whether it reaches Least, the bond of
// an account without a role.
func (k *Keeper) Firm(ctx context.Context, account string) (stake uint64, enough bool) {
	free := sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter())
	p, err := k.Get(free, account)
	if err != nil || p.Jailed {
		return 0, false
	}
	return p.Firm(), p.Firm() >= k.Least(free)
}

// Least is the smallest stake of any role, in uzen.
func (k *Keeper) Least(ctx context.Context) uint64 {
	params, err := k.Params(sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter()))
	if err != nil {
		return ^uint64(0)
	}
	return min(params.MinStake(crew.Worker), params.MinStake(crew.Verifier))
}
