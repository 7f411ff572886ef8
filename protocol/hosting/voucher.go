package hosting

import (
	"crypto/ed25519"
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Voucher is the promise of a payer that the provider of a channel may redeem an amount in all: each voucher of a
// channel is for more than those before it.
type Voucher struct {
	Chain     string `cbor:"1,keyasint"` // chain ID of the network
	Channel   uint64 `cbor:"2,keyasint"`
	Amount    uint64 `cbor:"3,keyasint"` // grains since the channel was opened
	Signature []byte `cbor:"4,keyasint"` // Ed25519, of the key of the channel, over Message
}

// Message is what the key of a channel signs.
func (v Voucher) Message() []byte {
	v.Signature = nil
	d := canon.Hash("starling/hosting/voucher/1", v)
	return d[:]
}

// Sign returns the voucher with the signature of a key.
func (v Voucher) Sign(key ed25519.PrivateKey) Voucher {
	v.Signature = ed25519.Sign(key, v.Message())
	return v
}

// Check returns why a voucher is none of a channel of a network, or is for more than the channel holds.
func (v Voucher) Check(c Channel, chain string) error {
	switch {
	case v.Chain != chain:
		return fmt.Errorf("%w: %.50q, not %q", ErrChain, v.Chain, chain)
	case v.Channel != c.ID:
		return fmt.Errorf("%w: the voucher is of channel %d, not %d", ErrForged, v.Channel, c.ID)
	case len(c.Key) != KeyBytes || len(v.Signature) != ed25519.SignatureSize ||
		!ed25519.Verify(c.Key, v.Message(), v.Signature):
		return fmt.Errorf("%w: channel %d", ErrForged, c.ID)
	case v.Amount <= c.Redeemed:
		return fmt.Errorf("%w: %d of %d grains", ErrSpent, v.Amount, c.Redeemed)
	case v.Amount > c.Locked:
		return fmt.Errorf("%w: %d of %d grains", ErrBeyond, v.Amount, c.Locked)
	}
	return nil
}
