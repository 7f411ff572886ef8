package payout

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/contracts"
	"github.com/starling-network/starling/protocol/payout"
)

// Network answers what a network has signed.
type Network interface {
	Set(ctx context.Context) (payout.Set, error)
	State(ctx context.Context, evm uint64) (payout.State, error)
	Handovers(ctx context.Context, after uint64) ([]payout.Handover, error)
	Claims(ctx context.Context, evm uint64, a payout.Address) (uint64, []payout.Proof, error)
}

// atOnce is the number of handovers in a transaction.
const atOnce = 20

// Deploy creates the contract of a network, named by its chain ID, with the present set of the network.
func Deploy(ctx context.Context, n Network, chain string, r RPC, w payout.Wallet) (Sent, error) {
	set, err := n.Set(ctx)
	if errors.Is(err, query.ErrNotFound) {
		err = fmt.Errorf("%w: governance sets the blocks of an epoch of payouts first", err)
	}
	if err != nil {
		return Sent{}, err
	}
	digest, err := set.Digest()
	if err != nil {
		return Sent{}, err
	}
	c, err := contracts.Payout()
	if err != nil {
		return Sent{}, err
	}
	return r.Send(ctx, w, "create", nil, append(c.Code, payout.Created(payout.Network(chain), set.Number, digest)...))
}

// Relay brings a contract up to date: the handovers that it does not know, and then the latest root.
func Relay(ctx context.Context, n Network, r RPC, w payout.Wallet, b payout.Bridge) (all []Sent, err error) {
	if err := r.is(ctx, b.EVM); err != nil {
		return nil, err
	}
	number, err := r.count(ctx, b.Contract, "setNumber()", latest)
	if err != nil {
		return nil, err
	}
	send := func(call string, input []byte, err error) error {
		if err != nil {
			return err
		}
		s, err := r.Send(ctx, w, call, &b.Contract, input)
		if err == nil {
			all = append(all, s)
		}
		return err
	}
	for {
		next, err := n.Handovers(ctx, number)
		if err != nil {
			return all, err
		}
		if len(next) == 0 {
			break
		}
		next = next[:min(len(next), atOnce)]
		input, err := payout.CallHandovers(next)
		if err := send("handover", input, err); err != nil {
			return all, err
		}
		number = next[len(next)-1].Number
	}
	epoch, err := r.count(ctx, b.Contract, "lastEpoch()", latest)
	if err != nil {
		return all, err
	}
	s, err := n.State(ctx, b.EVM)
	if errors.Is(err, query.ErrNotFound) {
		return all, nil
	}
	if err != nil || s.Signed <= epoch || s.Set != number { // the set of the contract signs the next root soon
		return all, err
	}
	input, err := payout.CallRoot(s.Signed, s.Root, s.Certificate)
	return all, send("submitRoot", input, err)
}

// Claim claims for an address all that the contract pays it.
func Claim(ctx context.Context, n Network, r RPC, w payout.Wallet, b payout.Bridge, of payout.Address) (Sent, error) {
	_, claims, err := n.Claims(ctx, b.EVM, of)
	if err == nil && len(claims) == 0 {
		err = fmt.Errorf("%w: claims of %s", query.ErrNotFound, of)
	}
	if err == nil {
		err = r.is(ctx, b.EVM)
	}
	if err != nil {
		return Sent{}, err
	}
	return r.Send(ctx, w, "claim", &b.Contract, payout.CallClaims(claims))
}

// Deposit deposits tokens for the account with an address of 20 bytes. The contract is first allowed to take them,
// unless they stand for ZEN.
func Deposit(ctx context.Context, r RPC, w payout.Wallet, b payout.Bridge, token payout.Address, amount *big.Int,
	to []byte) (all []Sent, err error) {
	if err := r.is(ctx, b.EVM); err != nil {
		return nil, err
	}
	if token != b.Zen() {
		s, err := r.Send(ctx, w, "approve", &token, payout.CallApprove(b.Contract, amount))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	s, err := r.Send(ctx, w, "deposit", &b.Contract, payout.CallDeposit(token, amount, to))
	if err != nil {
		return all, err
	}
	return append(all, s), nil
}
