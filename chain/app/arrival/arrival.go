// Package arrival lets workers join that never had coins: it begins their accounts, and counts the transactions for
// which they pay nothing. Which registration is admitted is a rule of x/registry.
package arrival

import (
	"cmp"
	"context"

	errorsmod "cosmossdk.io/errors"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/starling-network/starling/chain/app/account"
	"github.com/starling-network/starling/chain/app/room"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	registryrules "github.com/starling-network/starling/protocol/registry"
)

// Earners lists the workers that earn their stake.
type Earners interface {
	Early(ctx context.Context, m *registrypb.MsgRegister) error
	Check(ctx context.Context, m *registrypb.MsgRegister) (idle string, err error)
	Spend(ctx context.Context, m *registrypb.MsgRegister) error
	Speak(ctx context.Context, account string) error
}

// Fleets admits machines by invitations of their owners.
type Fleets interface {
	Early(ctx context.Context, m *registrypb.MsgEnrol) (registryrules.Participant, error)
	Claim(ctx context.Context, m *registrypb.MsgEnrol) error
}

// Begins begins the account of a worker that registers without a stake, or of a machine that enrols, and has no
// account. The signature names the number that follows from its address (account.Derived). A transaction that fails a
// later check leaves no account.
type Begins struct {
	Accounts account.Keeper
	Earners  Earners
	Fleets   Fleets
}

// AnteHandle implements sdk.AnteDecorator.
func (b Begins) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	m, e := arrives(tx), enrols(tx)
	if m == nil && e == nil {
		return next(ctx, tx, simulate)
	}
	sender, err := sdk.AccAddressFromBech32(cmp.Or(m.GetSender(), e.GetSender()))
	free := ctx.WithGasMeter(storetypes.NewInfiniteGasMeter())
	if err != nil || b.Accounts.HasAccount(free, sender) {
		return next(ctx, tx, simulate)
	}
	if e != nil {
		_, err = b.Fleets.Early(free, e)
	} else {
		err = b.Earners.Early(free, m)
	}
	if err != nil {
		return ctx, registry.ErrorTable.Wrap(err)
	}
	if err := b.Accounts.Begin(free, sender); err != nil {
		return ctx, errorsmod.Wrap(sdkerrors.ErrInvalidRequest, err.Error())
	}
	return next(ctx, tx, simulate)
}

// arrives returns the registration without a stake that a transaction begins with; nil if it begins with none.
func arrives(tx sdk.Tx) *registrypb.MsgRegister {
	if msgs := tx.GetMsgs(); len(msgs) > 0 {
		if m, ok := msgs[0].(*registrypb.MsgRegister); ok && m.Earns {
			return m
		}
	}
	return nil
}

// enrols returns the enrolment that a transaction begins with; nil if it begins with none.
func enrols(tx sdk.Tx) *registrypb.MsgEnrol {
	if msgs := tx.GetMsgs(); len(msgs) > 0 {
		m, _ := msgs[0].(*registrypb.MsgEnrol)
		return m
	}
	return nil
}

// Speaks records, once the signature is right, the transactions of workers that earn their stake, without a fee and
// without a duty, so that the next one has to wait; and the proofs of registrations without a fee, so that each serves
// once. It lets no registration into the pool that would get no place. Without a fee, an invitation serves the first
// account alone that enrols with it.
type Speaks struct {
	Earners
	Fleets Fleets
}

// AnteHandle implements sdk.AnteDecorator.
func (s Speaks) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	d := room.Declare(tx, len(ctx.TxBytes()))
	if d.Fee > 0 || simulate {
		return next(ctx, tx, simulate)
	}
	if !d.Owed && d.Account != "" {
		if err := s.Speak(ctx, d.Account); err != nil {
			return ctx, err
		}
	}
	if m := enrols(tx); m != nil {
		if err := s.Fleets.Claim(ctx, m); err != nil {
			return ctx, registry.ErrorTable.Wrap(err)
		}
	}
	if m := arrives(tx); m != nil {
		if err := s.proves(ctx, m); err != nil {
			return ctx, registry.ErrorTable.Wrap(err)
		}
	}
	return next(ctx, tx, simulate)
}

func (s Speaks) proves(ctx sdk.Context, m *registrypb.MsgRegister) error {
	if ctx.IsCheckTx() && !ctx.IsReCheckTx() { // in a block, one without a place fails, and its proof is used
		if _, err := s.Check(ctx, m); err != nil {
			return err
		}
	}
	return s.Spend(ctx, m)
}
