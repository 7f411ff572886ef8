package transaction

import (
	"errors"
	"fmt"
	"strings"

	abci "github.com/cometbft/cometbft/abci/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	"github.com/cosmos/gogoproto/proto"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/arena"
	"github.com/starling-network/starling/chain/x/beacon"
	"github.com/starling-network/starling/chain/x/catalog"
	"github.com/starling-network/starling/chain/x/delegation"
	"github.com/starling-network/starling/chain/x/hosting"
	"github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/payout"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/reward"
	"github.com/starling-network/starling/chain/x/sale"
	"github.com/starling-network/starling/chain/x/training"
)

// ErrRejected is the rule of an Error that no module of this chain knows.
var ErrRejected = errors.New("client: the chain refused the transaction")

// Error is a transaction that the chain refused: its code, what was refused and why, and what to do. It unwraps to the
// sentinel of the rule that refused it, such as refusal.ErrStale.
type Error = adapter.Error

// Result is a transaction that the chain executed.
type Result struct {
	Height  int64
	Hash    string // hexadecimal
	GasUsed int64
	Events  []abci.Event
	Data    []byte // the responses of its messages, as a TxMsgData
}

// Response reads the response of the first message of the transaction.
func (r Result) Response(into proto.Message) error {
	var all sdk.TxMsgData
	if err := proto.Unmarshal(r.Data, &all); err != nil {
		return fmt.Errorf("client: the responses of transaction %s: %w", r.Hash, err)
	}
	if len(all.MsgResponses) == 0 || all.MsgResponses[0].TypeUrl != sdk.MsgTypeURL(into) {
		return fmt.Errorf("client: transaction %s has no response of %s", r.Hash, sdk.MsgTypeURL(into))
	}
	if err := proto.Unmarshal(all.MsgResponses[0].Value, into); err != nil {
		return fmt.Errorf("client: the response of transaction %s: %w", r.Hash, err)
	}
	return nil
}

// Fee is what the transaction paid, as the chain writes coins; "" for nothing.
func (r Result) Fee() string {
	for _, e := range r.Events {
		for _, a := range e.Attributes {
			if e.Type == sdk.EventTypeTx && a.Key == sdk.AttributeKeyFee {
				return a.Value
			}
		}
	}
	return ""
}

// Refusal is the error of the code of a transaction: an *Error, or nil for code 0.
func Refusal(space string, code uint32, log string) error {
	if code == 0 {
		return nil
	}
	if _, after, ok := strings.Cut(log, "message index: "); ok {
		if _, text, ok := strings.Cut(after, ": "); ok {
			log = text
		}
	}
	e := &Error{ErrorCode: adapter.ErrorCode{Code: code, Rule: ErrRejected}, Space: space, Text: adapter.Readable(log)}
	for _, module := range []*adapter.ErrorTable{registry.ErrorTable, market.ErrorTable, reward.ErrorTable,
		training.ErrorTable, sale.ErrorTable, payout.ErrorTable, catalog.ErrorTable, hosting.ErrorTable, beacon.ErrorTable,
		arena.ErrorTable, delegation.ErrorTable, standard} {
		if known, ok := module.Find(code); ok && module.Space == space {
			e.ErrorCode = known
		}
	}
	return e
}

// The code of app.ErrBusy.
const (
	busySpace = "app"
	busyCode  = 2
)

// OutOfGas reports whether a transaction took more gas than its limit.
func OutOfGas(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Space == sdkerrors.RootCodespace && e.Code == sdkerrors.ErrOutOfGas.ABCICode()
}

// unpaid reports whether a transaction was refused for its fee.
func Unpaid(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Space == sdkerrors.RootCodespace && e.Code == sdkerrors.ErrInsufficientFee.ABCICode()
}

// simulatesEnough reports whether a validator refused to execute a transaction for nothing because it executes as many
// as it may.
func Busy(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Space == busySpace && e.Code == busyCode
}

// outOfTurn reports whether a code says that a transaction has another sequence than its account.
func OutOfTurn(space string, code uint32) bool {
	return space == sdkerrors.RootCodespace && code == sdkerrors.ErrWrongSequence.ABCICode()
}

// standard are the refusals of the SDK that users of this chain meet: what is wrong with a transaction before any of
// our rules looks at it, and coins that are not there. Their codes are the SDK's.
var standard = &adapter.ErrorTable{Space: sdkerrors.RootCodespace, List: []adapter.ErrorCode{
	{Code: sdkerrors.ErrTxDecode.ABCICode(), Rule: ErrRejected, Fix: "Send the bytes of exactly one signed transaction."},
	{Code: sdkerrors.ErrUnauthorized.ABCICode(), Rule: ErrRejected,
		Fix: "Sign with the key of the sender, for the name of this chain and the number of the account."},
	{Code: sdkerrors.ErrInsufficientFunds.ABCICode(), Rule: ErrRejected, Fix: "Fund the account, or send less."},
	{Code: sdkerrors.ErrUnknownRequest.ABCICode(), Rule: ErrRejected, Fix: "Send a message that this chain knows."},
	{Code: sdkerrors.ErrInvalidAddress.ABCICode(), Rule: ErrRejected,
		Fix: "Check the address: accounts of this chain begin with starling1."},
	{Code: sdkerrors.ErrInvalidPubKey.ABCICode(), Rule: ErrRejected, Fix: "Sign with the key of the sender."},
	{Code: sdkerrors.ErrUnknownAddress.ABCICode(), Rule: ErrRejected,
		Fix: "Send coins to the account: it exists once it has some."},
	{Code: sdkerrors.ErrInvalidCoins.ABCICode(), Rule: ErrRejected,
		Fix: "Give amounts above zero, in uzen or shares of a model."},
	{Code: sdkerrors.ErrOutOfGas.ABCICode(), Rule: ErrRejected, Fix: "Send it again with more gas."},
	{Code: sdkerrors.ErrInsufficientFee.ABCICode(), Rule: ErrRejected,
		Fix: "Send it again with the fee that the validator asks for."},
	{Code: sdkerrors.ErrInvalidRequest.ABCICode(), Rule: ErrRejected, Fix: "Correct the message and send it again."},
	{Code: sdkerrors.ErrTxInMempoolCache.ABCICode(), Rule: ErrRejected,
		Fix: "Nothing is left to do: the validator has the transaction already."},
	{Code: sdkerrors.ErrMempoolIsFull.ABCICode(), Rule: ErrRejected, Fix: "Send it again after a block."},
	{Code: sdkerrors.ErrTxTooLarge.ABCICode(), Rule: ErrRejected, Fix: "Send less at once."},
	{Code: sdkerrors.ErrTxTimeoutHeight.ABCICode(), Rule: ErrRejected,
		Fix: "Sign it again: it was valid up to a height that is past."},
	{Code: sdkerrors.ErrWrongSequence.ABCICode(), Rule: ErrRejected,
		Fix: "Read the sequence of the account and sign again: a transaction with this one was executed, or one before it " +
			"is missing."},
}}
