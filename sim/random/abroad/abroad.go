// Package abroad draws messages of accounts that are paid out on another chain. The simulation has no votes, so that no
// epoch ends, and no deposit is credited.
package abroad

import (
	"context"
	"crypto/ed25519"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/payout/payoutpb"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/protocol/payout"
	"github.com/starling-network/starling/sim/random/draw"
)

const evm = 1337

// Params have one bridge, with a minimum.
func Params(d draw.Source) payout.Params {
	return payout.Params{EpochBlocks: uint64(d.UpTo(5, 6)), Bridges: []payout.Bridge{{EVM: evm,
		Contract: payout.Address{0xc0}, Minimum: 1 + d.Below(100)}}}
}

// Speaker is an account that sends messages.
type Speaker interface {
	Address() string
	Submit(ctx context.Context, msgs ...sdk.Msg) (transaction.Result, error)
}

// Say sends the next message of an account that can spend an amount in uzen.
func Say(ctx context.Context, s Speaker, d draw.Source, chain string, amount uint64) error {
	_, err := s.Submit(ctx, next(d, chain, s.Address(), amount))
	return err
}

// next names an address of an account, now and then with the signature of another, or withdraws an amount in uzen.
func next(d draw.Source, chain, me string, amount uint64) sdk.Msg {
	if d.Often(60) {
		m := &payoutpb.MsgWithdraw{Sender: me, EvmChain: evm, Denom: payout.Own, Amount: fmt.Sprint(amount)}
		if d.Often(3) {
			m.Denom = "evm/1337/none"
		}
		return m
	}
	key := canon.Sum("random/abroad", []byte(me))
	w, err := payout.NewWallet(key[:])
	if err != nil {
		panic(err) // hardly a digest is no key
	}
	a := w.Address()
	m := &payoutpb.MsgSetPayout{Sender: me, Address: a[:], Signature: w.SignText(payout.Text(chain, me, a))}
	switch {
	case d.Often(20): // it withdraws nothing on this chain
		secret := ed25519.NewKeyFromSeed(key[:])
		own := payout.Key(secret.Public().(ed25519.PublicKey))
		m.Address, m.Signature = own[:], ed25519.Sign(secret, []byte(payout.Text(chain, me, own)))
	case d.Often(10):
		m.Signature[0]++
	case d.Often(10):
		return &payoutpb.MsgSetPayout{Sender: me}
	case d.Often(30):
		m.EvmChain, m.Keep = evm, d.Below(1_000_000)
	}
	return m
}
