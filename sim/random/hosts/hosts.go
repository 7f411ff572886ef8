// Package hosts draws messages of hosted models: of owners, of providers, of payers with their vouchers, and of
// providers that would redeem more than was signed.
package hosts

import (
	"context"
	"crypto/ed25519"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	chainhosting "github.com/starling-network/starling/chain/x/hosting"
	"github.com/starling-network/starling/chain/x/hosting/hostingpb"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/sim/random/draw"
)

// Book has the models, places and channels of the chain.
type Book interface {
	Models(ctx context.Context) ([]hosting.Model, error)
	Places(ctx context.Context, model uint64) ([]hosting.Place, error)
	Channels(ctx context.Context, account string, provider bool) ([]hosting.Channel, error)
}

// Params are parameters whose blocks a play lives to see.
func Params(d draw.Source) hosting.Params {
	return hosting.Params{FeePPM: uint32(d.Below(200_000)), Close: uint32(d.UpTo(5, 9)), Unbonding: uint32(d.UpTo(9, 12)),
		MinBond: 1 + d.Below(1000)}
}

// Proposed are parameters that governance sets.
func Proposed(d draw.Source, authority string) *hostingpb.MsgUpdateParams {
	return &hostingpb.MsgUpdateParams{Authority: authority, Params: chainhosting.FromParams(Params(d))}
}

// keys is how many keys an account has, and so how many channels it opens.
const keys = 12

// keyOf is a key of the vouchers of an account.
func keyOf(payer string, n int) ed25519.PrivateKey {
	seed := canon.Sum("random/hosts", []byte(payer), []byte{byte(n)})
	return ed25519.NewKeyFromSeed(seed[:])
}

// signer is the key of a channel.
func signer(c hosting.Channel) ed25519.PrivateKey {
	for n := range keys {
		if key := keyOf(c.Payer, n); string(key.Public().(ed25519.PublicKey)) == string(c.Key) {
			return key
		}
	}
	panic("a channel that no account of the play opened")
}

// Next is any message of hosting and its sender; "": there is none. me owns, hosts and pays, an amount in a coin. jobs
// are those whose shares may have the revenue.
func Next(ctx context.Context, d draw.Source, b Book, chain, me string, jobs []string, c coin.Coin,
	amount uint64) (sender string, m sdk.Msg, _ error) {
	models, err := b.Models(ctx)
	if err != nil {
		return "", nil, err
	}
	if n := d.Intn(20); len(models) == 0 || n == 0 {
		return me, register(d, me, jobs, models), nil
	} else if n < 4 {
		return me, &hostingpb.MsgHost{Sender: me, Model: draw.Pick(d, models).ID, Url: "http://127.0.0.1/", Denom: c.Denom,
			Input: d.Below(1000), Output: d.Below(1000), Bond: bond(c, amount)}, nil
	}
	places, err := b.Places(ctx, 0)
	if err != nil || len(places) == 0 {
		return "", nil, err
	}
	p := draw.Pick(d, places)
	switch {
	case d.Often(3):
		return p.Provider, &hostingpb.MsgLeave{Sender: p.Provider, Model: p.Model}, nil
	case d.Often(40) && p.Prices.Denom == c.Denom:
		return me, &hostingpb.MsgOpen{Sender: me, Model: p.Model, Provider: p.Provider, Amount: amount, Denom: c.Denom,
			Key: keyOf(me, d.Intn(keys)).Public().(ed25519.PublicKey)}, nil
	}
	return pay(ctx, d, b, chain, amount)
}

// bond is an amount of the network's own coin, or so little that accounts have it.
func bond(c coin.Coin, amount uint64) uint64 {
	if c.Own() {
		return amount
	}
	return 1000
}

func register(d draw.Source, me string, jobs []string, models []hosting.Model) sdk.Msg {
	name := fmt.Sprintf("%x", d.Uint64())
	files, weights := canon.Sum("random/hosts/files", []byte(name)), canon.Sum("random/hosts/weights", []byte(name))
	m := &hostingpb.MsgRegister{Sender: me, Name: name, Files: files[:], Weights: weights[:],
		PartPpm: uint32(d.Below(1_000_000)), Licence: "Apache-2.0"}
	if len(jobs) > 0 && d.Often(70) {
		m.Job = draw.Pick(d, jobs)
	}
	if len(models) > 0 && d.Often(50) {
		m.Base = draw.Pick(d, models).ID // some are adapters themselves, and refused
	}
	return m
}

// pay redeems a voucher of a channel, most of the time one that was signed, or funds or closes a channel.
func pay(ctx context.Context, d draw.Source, b Book, chain string, amount uint64) (sender string, m sdk.Msg, _ error) {
	channels, err := b.Channels(ctx, "", false)
	if err != nil || len(channels) == 0 {
		return "", nil, err
	}
	c := draw.Pick(d, channels)
	switch n := d.Intn(10); {
	case n == 0:
		return c.Payer, &hostingpb.MsgFund{Sender: c.Payer, Channel: c.ID, Amount: amount}, nil
	case n == 1:
		by := draw.Pick(d, []string{c.Payer, c.Provider})
		return by, &hostingpb.MsgClose{Sender: by, Channel: c.ID}, nil
	case c.Held() == 0 && !d.Often(5):
		return "", nil, nil
	}
	v := hosting.Voucher{Chain: chain, Channel: c.ID, Amount: c.Redeemed + 1 + d.Below(c.Held()+1)}
	if v.Amount = min(v.Amount, c.Locked); d.Often(5) {
		v.Chain = "another"
	}
	v = v.Sign(signer(c))
	if d.Often(5) {
		v.Amount++
	}
	return c.Provider, &hostingpb.MsgRedeem{Sender: c.Provider, Channel: c.ID, Chain: v.Chain, Amount: v.Amount,
		Signature: v.Signature, Total: v.Amount - min(v.Amount, d.Below(3))}, nil
}
