package room

import (
	"math/bits"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/training"
)

// Declared is what a transaction declares.
type Declared struct {
	Account  string // its only signer; "": it has several signers, or it cannot be decoded
	Sequence uint64
	Bytes    int64
	Gas      uint64 // gas limit
	Fee      uint64 // uzen
	Owed     bool   // all its messages are of kinds that members of runs and parties of disputes may owe
	Moves    bool   // all its messages are moves of disputes
}

// Declare reads a transaction of size bytes.
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

// Pays reports whether the fee covers the gas limit at a price in uzen per million units.
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
