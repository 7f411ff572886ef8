package app

import (
	errorsmod "cosmossdk.io/errors"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	"google.golang.org/protobuf/encoding/protowire"
)

// fewMessages refuses a transaction of more than MaxMessages messages without decoding the messages.
func fewMessages(transaction []byte) error {
	const raw, body = 1, 1 // fields: the body of a TxRaw, a message of a TxBody
	n := 0
	err := fields(transaction, raw, func(b []byte) error {
		return fields(b, body, func([]byte) error {
			if n++; n > MaxMessages {
				return errorsmod.Wrapf(sdkerrors.ErrInvalidRequest, "more than %d messages in one transaction; send several",
					MaxMessages)
			}
			return nil
		})
	})
	return err
}

// fields calls each with the bytes of every field that has the given number.
func fields(b []byte, number protowire.Number, each func([]byte) error) error {
	for len(b) > 0 {
		found, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errorsmod.Wrap(sdkerrors.ErrTxDecode, protowire.ParseError(n).Error())
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(found, kind, b)
		if size < 0 {
			return errorsmod.Wrap(sdkerrors.ErrTxDecode, protowire.ParseError(size).Error())
		}
		if found == number && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b)
			if err := each(value); err != nil {
				return err
			}
		}
		b = b[size:]
	}
	return nil
}
