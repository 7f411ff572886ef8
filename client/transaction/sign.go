// Package transaction signs the transactions of accounts, reckons their fees, and reads what a chain answered to them.
// It reaches no network.
package transaction

import (
	"context"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"

	"github.com/starling-network/starling/chain/wire"
	"github.com/starling-network/starling/client/gas"
	"github.com/starling-network/starling/client/wallet"
)

// Account is where a transaction stands in the life of its account, and what it pays.
type Account struct {
	ChainID  string
	Number   uint64 // of the account on the chain
	Sequence uint64 // transactions that the account has made
	Fee      Fee
	Memo     string // a note that everybody reads
}

// Sign makes the bytes of a transaction that is void after a height.
func Sign(ctx context.Context, signer wallet.Signer, a Account, until uint64, msgs ...sdk.Msg) ([]byte, error) {
	e, err := wire.Shared()
	if err != nil {
		return nil, err
	}
	b := e.Tx.NewTxBuilder()
	if err := b.SetMsgs(msgs...); err != nil {
		return nil, err
	}
	limit := a.Fee.Gas
	if limit == 0 {
		limit = gas.Limit(msgs...)
	}
	b.SetGasLimit(limit)
	b.SetFeeAmount(a.Fee.Amount)
	if a.Fee.Payer != "" {
		payer, err := sdk.AccAddressFromBech32(a.Fee.Payer)
		if err != nil {
			return nil, err
		}
		b.SetFeeGranter(payer)
	}
	b.SetMemo(a.Memo)
	b.SetTimeoutHeight(until)
	const mode = signing.SignMode_SIGN_MODE_DIRECT
	key := &secp256k1.PubKey{Key: signer.PublicKey()}
	data := &signing.SingleSignatureData{SignMode: mode}
	signature := signing.SignatureV2{PubKey: key, Data: data, Sequence: a.Sequence}
	if err := b.SetSignatures(signature); err != nil {
		return nil, err
	}
	text, err := authsigning.GetSignBytesAdapter(ctx, e.Tx.SignModeHandler(), mode, authsigning.SignerData{
		Address: signer.Address(), ChainID: a.ChainID, PubKey: key, AccountNumber: a.Number, Sequence: a.Sequence,
	}, b.GetTx())
	if err != nil {
		return nil, err
	}
	if data.Signature, err = signer.Sign(text); err != nil {
		return nil, err
	}
	if err := b.SetSignatures(signature); err != nil {
		return nil, err
	}
	return e.Tx.TxEncoder()(b.GetTx())
}
