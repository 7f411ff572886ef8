package client

import (
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/starling-network/starling/chain/adapter"
)

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
