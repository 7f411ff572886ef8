package app

import (
	"context"
	"fmt"

	errorsmod "cosmossdk.io/errors"
	abci "github.com/cometbft/cometbft/abci/types"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"
)

// MaxMessages is the limit of messages in a transaction, paid or not, in a block or simulated.
const MaxMessages = 128

// Limits of a simulated transaction without a signature, as wallets send it.
const (
	UnsignedBytes    = 64 << 10
	UnsignedMessages = 16
)

// maxAhead is how far the sequence of a simulated transaction may be above the sequence of its account.
const maxAhead = 1000

// Simulate executes a transaction on a copy of the latest state and returns the gas that it takes. Unlike the SDK, it
// verifies the signature if there is one, and limits bytes, messages and gas, more strictly without a signature. It
// reads nothing that a block or CheckTx writes. It treats pending transactions of the account as executed: a sequence
// up to maxAhead too high is no error.
func (a *App) Simulate(transaction []byte) (gas sdk.GasInfo, result *sdk.Result, err error) {
	done, err := a.simulation(context.Background(), transaction)
	if err != nil {
		return gas, nil, err
	}
	defer done()
	if err := fewMessages(transaction); err != nil {
		return gas, nil, err
	}
	tx, err := a.Tx.TxDecoder()(transaction)
	if err != nil {
		return gas, nil, errorsmod.Wrap(sdkerrors.ErrTxDecode, err.Error())
	}
	ctx, err := simulator{a}.copied(transaction, tx)
	if err != nil {
		return gas, nil, err
	}
	used := ctx.GasMeter()
	defer func() {
		if r := recover(); r != nil {
			result, err = nil, errorsmod.Wrap(sdkerrors.ErrPanic, fmt.Sprint(r))
			if out, ok := r.(storetypes.ErrorOutOfGas); ok {
				err = errorsmod.Wrapf(sdkerrors.ErrOutOfGas, "%s: more than %d in a simulation", out.Descriptor, used.Limit())
			}
		}
		gas.GasUsed = used.GasConsumed()
	}()
	if ctx, err = (simulator{a}).passed(ctx, tx); err != nil {
		return gas, nil, err
	}
	gas.GasWanted = ctx.GasMeter().Limit()
	spent := ctx.GasMeter().GasConsumed()
	used = storetypes.NewGasMeter(SimulatedGas)
	used.ConsumeGas(spent, "ante")
	result, err = simulator{a}.messages(ctx.WithGasMeter(used), tx)
	return gas, result, err
}

// simulator executes transactions on copies of the state.
type simulator struct{ *App }

// copied returns the context of a simulated transaction: the latest state, in which the account of the signer has the
// sequence that the transaction declares.
func (a simulator) copied(transaction []byte, tx sdk.Tx) (sdk.Context, error) {
	// Another goroutine may be committing a block.
	ctx, err := a.CreateQueryContextWithCheckHeader(0, false, false)
	if err != nil {
		return ctx, err
	}
	ctx = ctx.WithIsCheckTx(false).WithExecMode(sdk.ExecModeSimulate).WithIsSigverifyTx(true).WithTxBytes(transaction).
		WithGasMeter(storetypes.NewGasMeter(SimulatedGas)).WithEventManager(sdk.NewEventManager())
	ctx = ctx.WithConsensusParams(a.GetConsensusParams(ctx))
	signed, ok := tx.(authsigning.SigVerifiableTx)
	if !ok {
		return ctx, errorsmod.Wrap(sdkerrors.ErrTxDecode, "it is not signed")
	}
	signers, err := signed.GetSigners()
	if err != nil {
		return ctx, err
	}
	signatures, err := signed.GetSignaturesV2()
	if err != nil {
		return ctx, err
	}
	if len(signers) != 1 || len(signatures) != 1 {
		return ctx, nil // the signatures are verified with the stored sequences of the accounts
	}
	account := keepersOf(a.App).accounts.GetAccount(ctx, signers[0])
	if account == nil {
		return ctx, errorsmod.Wrapf(sdkerrors.ErrUnknownAddress, "account %s does not exist", sdk.AccAddress(signers[0]))
	}
	if claimed := signatures[0].Sequence; claimed > account.GetSequence() && claimed-account.GetSequence() <= maxAhead {
		if err := account.SetSequence(claimed); err != nil {
			return ctx, err
		}
		keepersOf(a.App).accounts.SetAccount(ctx, account)
	}
	return ctx, nil
}

// passed checks a transaction before its messages are executed.
func (a simulator) passed(ctx sdk.Context, tx sdk.Tx) (sdk.Context, error) {
	for _, m := range tx.GetMsgs() {
		if v, ok := m.(sdk.HasValidateBasic); ok {
			if err := v.ValidateBasic(); err != nil {
				return ctx, err
			}
		}
	}
	if !unsigned(tx) {
		return a.passing(ctx, tx, false)
	}
	if n, size := len(tx.GetMsgs()), len(ctx.TxBytes()); n > UnsignedMessages || size > UnsignedBytes {
		return ctx, errorsmod.Wrapf(sdkerrors.ErrUnauthorized,
			"%d messages and %d bytes without a signature, at most %d and %d are simulated: sign it", n, size, UnsignedMessages,
			UnsignedBytes)
	}
	return a.passing(ctx, tx, true)
}

// unsigned reports whether a transaction has one empty signature, as wallets send it for simulation.
func unsigned(tx sdk.Tx) bool {
	signed, ok := tx.(authsigning.SigVerifiableTx)
	if !ok {
		return false
	}
	signatures, err := signed.GetSignaturesV2()
	if err != nil || len(signatures) != 1 {
		return false
	}
	single, ok := signatures[0].Data.(*signing.SingleSignatureData)
	return ok && len(single.Signature) == 0
}

// messages executes the messages of a transaction.
func (a simulator) messages(ctx sdk.Context, tx sdk.Tx) (*sdk.Result, error) {
	all := &sdk.Result{}
	for i, m := range tx.GetMsgs() {
		handler := a.MsgServiceRouter().Handler(m)
		if handler == nil {
			return nil, errorsmod.Wrapf(sdkerrors.ErrUnknownRequest, "no message handler found for %T", m)
		}
		r, err := handler(ctx, m)
		if err != nil {
			return nil, errorsmod.Wrapf(err, "failed to execute message; message index: %d", i)
		}
		all.Events = append(all.Events, r.Events...)
		all.MsgResponses = append(all.MsgResponses, r.MsgResponses...)
	}
	return all, nil
}

// CheckTx implements abci.Application. It refuses a transaction of too many messages before decoding it.
func (a *App) CheckTx(r *abci.RequestCheckTx) (*abci.ResponseCheckTx, error) {
	if err := fewMessages(r.Tx); err != nil {
		return sdkerrors.ResponseCheckTxWithEvents(err, 0, 0, nil, false), nil
	}
	answer, err := a.BaseApp.CheckTx(r)
	if r.Type == abci.CheckTxType_Recheck && (err != nil || answer.Code != 0) {
		a.lane.Drop(r.Tx)
	}
	return answer, err
}
