package payout

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/payout/payoutpb"
	"github.com/starling-network/starling/protocol/payout"
)

// messages implements payoutpb.MsgServer over a keeper.
type messages struct{ *Keeper }

// SetPayout implements payoutpb.MsgServer.
func (k messages) SetPayout(ctx context.Context,
	m *payoutpb.MsgSetPayout) (*payoutpb.MsgSetPayoutResponse, error) {
	if len(m.Address) == 0 {
		return &payoutpb.MsgSetPayoutResponse{}, errors.Join(k.payees.Remove(ctx, m.Sender),
			k.automatic.Remove(ctx, m.Sender))
	}
	now := sdk.UnwrapSDKContext(ctx)
	now.GasMeter().ConsumeGas(recordGas+signatureGas, "address of payouts")
	p, err := payout.NewPayee(now.ChainID(), m.Sender, m.Address, m.Signature)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if p.EVM, p.Keep = m.EvmChain, m.Keep; p.EVM == 0 {
		return &payoutpb.MsgSetPayoutResponse{}, errors.Join(k.payees.Set(ctx, m.Sender, p),
			k.automatic.Remove(ctx, m.Sender))
	}
	b, err := k.bridge(ctx, p.EVM)
	if err == nil {
		err = b.Pays(p)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &payoutpb.MsgSetPayoutResponse{}, errors.Join(k.payees.Set(ctx, m.Sender, p), k.automatic.Set(ctx, m.Sender))
}

func (k *Keeper) bridge(ctx context.Context, evm uint64) (payout.Bridge, error) {
	p, err := k.Params(ctx)
	if err != nil {
		return payout.Bridge{}, err
	}
	if p.EpochBlocks == 0 {
		return payout.Bridge{}, ErrOff
	}
	return p.Bridge(evm)
}

// Withdraw implements payoutpb.MsgServer.
func (k messages) Withdraw(ctx context.Context, m *payoutpb.MsgWithdraw) (*payoutpb.MsgWithdrawResponse, error) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(recordGas, "withdrawal")
	payee, ok, err := get(k.payees.Get(ctx, m.Sender))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %s", ErrPayee, m.Sender))
	}
	b, err := k.bridge(ctx, m.EvmChain)
	if err == nil {
		err = b.Pays(payee)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	amount, err := number(m.Amount)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	from, err := sdk.AccAddressFromBech32(m.Sender)
	if err != nil {
		return nil, err
	}
	return &payoutpb.MsgWithdrawResponse{}, ErrorTable.Wrap(k.enter(ctx, from, b, payee.Address, m.Denom, amount))
}

// number reads a decimal number of base units.
func number(text string) (*big.Int, error) {
	if len(text) > 60 { // before it is read, which takes time in proportion to the square of its length
		return nil, fmt.Errorf("%w: of %d digits", ErrAmount, len(text))
	}
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || n.Sign() < 0 || n.String() != text {
		return nil, fmt.Errorf("%w: %.60q", ErrAmount, text)
	}
	return n, nil
}

// Sign implements payoutpb.MsgServer.
func (k messages) Sign(ctx context.Context, m *payoutpb.MsgSign) (*payoutpb.MsgSignResponse, error) {
	t, ok, err := get(k.turn.Get(ctx))
	if err != nil {
		return nil, err
	}
	if !ok || t.Number != m.Turn {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %d", ErrTurn, m.Turn))
	}
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(signingGas*uint64(len(t.Messages)), "signatures of payouts")
	set, err := k.set.Get(ctx)
	if err != nil {
		return nil, err
	}
	added, err := k.receive(ctx, set, t, m.Validator, m.Signatures)
	if err == nil && !added {
		err = fmt.Errorf("%w: of validator %X, or it has signed before", payout.ErrSignature, m.Validator)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &payoutpb.MsgSignResponse{}, k.complete(adapter.Unmetered(ctx), set, t)
}

// UpdateParams implements payoutpb.MsgServer.
func (k messages) UpdateParams(ctx context.Context,
	m *payoutpb.MsgUpdateParams) (*payoutpb.MsgUpdateParamsResponse, error) {
	if err := adapter.OnlyBy(k.authority, m.Authority); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	had, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	p, err := ToParams(m.Params)
	if err == nil {
		err = had.Change(p)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &payoutpb.MsgUpdateParamsResponse{}, k.params.Set(ctx, p)
}

// ToParams reads parameters as messages have them.
func ToParams(m payoutpb.Params) (payout.Params, error) {
	p := payout.Params{EpochBlocks: m.EpochBlocks}
	for _, from := range m.Bridges {
		b := payout.Bridge{EVM: from.EvmChain, Minimum: from.Minimum}
		if len(from.Contract) != len(b.Contract) {
			return p, fmt.Errorf("%w: the contract of chain %d", payout.ErrAddress, b.EVM)
		}
		copy(b.Contract[:], from.Contract)
		for _, t := range from.Tokens {
			token := payout.Token{}
			if len(t.Address) != len(token.Address) {
				return p, fmt.Errorf("%w: a token of chain %d", payout.ErrAddress, b.EVM)
			}
			copy(token.Address[:], t.Address)
			least, err := number(t.Minimum)
			if err != nil {
				return p, err
			}
			if token.Minimum = least.Bytes(); len(token.Minimum) == 0 {
				token.Minimum = nil
			}
			b.Tokens = append(b.Tokens, token)
		}
		p.Bridges = append(p.Bridges, b)
	}
	return p, nil
}

// FromParams writes parameters as messages have them.
func FromParams(p payout.Params) payoutpb.Params {
	m := payoutpb.Params{EpochBlocks: p.EpochBlocks}
	for _, b := range p.Bridges {
		to := payoutpb.Bridge{EvmChain: b.EVM, Contract: b.Contract[:], Minimum: b.Minimum}
		for _, t := range b.Tokens {
			to.Tokens = append(to.Tokens, payoutpb.Token{Address: t.Address[:],
				Minimum: new(big.Int).SetBytes(t.Minimum).String()})
		}
		m.Bridges = append(m.Bridges, to)
	}
	return m
}
