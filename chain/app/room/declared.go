package room

import (
	"math/bits"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/training"
)

// Declared is what a transaction says of itself.
type Declared struct {
	Account  string // its only signer; "": it has several, or is none
	Sequence uint64
	Bytes    int64
	Gas      uint64 // its limit
	Fee      uint64 // uzen
	Owed     bool   // all of its messages are such as members of runs and parties of disputes owe
	Moves    bool   // all are moves of disputes
}

// Declare reads what a transaction of a size in bytes declares.
func Declare(tx sdk.Tx, size int) (d Declared) {
	d.Bytes = int64(size)
	if f, ok := tx.(sdk.FeeTx); ok {
		d.Gas = f.GetGas()
		if amount := f.GetFee().AmountOf(adapter.Denom); amount.IsUint64() {
			d.Fee = amount.Uint64()
		}
	}
	d.Owed, d.Moves = true, true
	for _, m := range tx.GetMsgs() {
		rank, _ := training.Owed(m)
		d.Owed, d.Moves = d.Owed && (rank > 0 || registry.Owed(m)), d.Moves && rank == 1
	}
	signed, ok := tx.(authsigning.SigVerifiableTx)
	if !ok {
		return d
	}
	signers, err := signed.GetSigners()
	signatures, wrong := signed.GetSignaturesV2()
	if err == nil && wrong == nil && len(signers) == 1 && len(signatures) == 1 {
		d.Account, d.Sequence = sdk.AccAddress(signers[0]).String(), signatures[0].Sequence
	}
	return d
}

// Pays reports whether a transaction pays a price for its gas, in uzen for a million units.
func (d Declared) Pays(price uint64) bool {
	if d.Gas == 0 || price == 0 {
		return d.Gas > 0
	}
	high, low := bits.Mul64(d.Gas, price)
	if high > 0 || low > 1<<63 {
		return false
	}
	return d.Fee >= (low+999_999)/1_000_000
}
