package delegation

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/delegation/delegationpb"
	xregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/delegation"
	"github.com/starling-network/starling/protocol/registry"
)

// messages implements delegationpb.MsgServer over a keeper.
type messages struct{ *Keeper }

// member returns a participant, and whether stake may be delegated to it.
func (k *Keeper) member(ctx context.Context, id string) (p registry.Participant, takes bool, err error) {
	p, err = k.registry.Get(ctx, id)
	if errors.Is(err, xregistry.ErrUnknown) {
		return p, false, nil
	}
	return p, open(p), err
}

// SetTerms implements delegationpb.MsgServer.
func (k messages) SetTerms(ctx context.Context,
	m *delegationpb.MsgSetTerms) (*delegationpb.MsgSetTermsResponse, error) {
	p, err := k.pool(ctx, m.Sender)
	known := err == nil
	if errors.Is(err, delegation.ErrNoPool) {
		p = delegation.Pool{ID: m.Sender}
		_, takes, err := k.member(ctx, m.Sender)
		if err == nil && !takes {
			err = fmt.Errorf("%w: %s", delegation.ErrParty, m.Sender)
		}
		if err != nil {
			return nil, ErrorTable.Wrap(err)
		}
		record(ctx)
	} else if err != nil {
		return nil, err
	}
	params, err := k.registry.Params(ctx)
	if err != nil {
		return nil, err
	}
	p, from, err := p.Announce(known, m.CommissionPpm, m.Closed, params.UnstakeBlocks, height(ctx))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &delegationpb.MsgSetTermsResponse{Height: from}, k.pools.Set(ctx, p.ID, p)
}

// Delegate implements delegationpb.MsgServer.
func (k messages) Delegate(ctx context.Context,
	m *delegationpb.MsgDelegate) (*delegationpb.MsgDelegateResponse, error) {
	p, err := k.pool(ctx, m.Participant)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	to, takes, err := k.member(ctx, m.Participant)
	if err == nil && (!takes || m.Sender == m.Participant) {
		err = fmt.Errorf("%w: %s to %s", delegation.ErrParty, m.Sender, m.Participant)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	old, err := k.part(ctx, m.Participant, m.Sender)
	if err != nil {
		return nil, err
	}
	if old.Empty() {
		record(ctx)
	}
	params, err := k.registry.Params(ctx)
	if err != nil {
		return nil, err
	}
	p, d, err := p.Join(old, m.Amount, to.Firm(), params.EpochBlocks, height(ctx))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if err := k.custody.Lock(ctx, m.Sender, coin.Coin{}.Denom, m.Amount); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &delegationpb.MsgDelegateResponse{Height: d.JoinsAt}, k.save(ctx, p, old, d)
}

// Undelegate implements delegationpb.MsgServer.
func (k messages) Undelegate(ctx context.Context,
	m *delegationpb.MsgUndelegate) (*delegationpb.MsgUndelegateResponse, error) {
	p, old, err := k.found(ctx, m.Participant, m.Sender)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	params, err := k.registry.Params(ctx)
	if err != nil {
		return nil, err
	}
	if err := k.accrue(ctx, old); err != nil {
		return nil, err
	}
	p, d, back, err := p.Leave(old, m.Amount, params.UnstakeBlocks, height(ctx))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &delegationpb.MsgUndelegateResponse{Returned: back, Height: d.LeavesAt},
		errors.Join(k.custody.Pay(ctx, coin.Coin{}.Denom, m.Sender, back), k.save(ctx, p, old, d))
}

// Claim implements delegationpb.MsgServer.
func (k messages) Claim(ctx context.Context, m *delegationpb.MsgClaim) (*delegationpb.MsgClaimResponse, error) {
	p, d, err := k.found(ctx, m.Participant, m.Sender)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if p, err = k.claim(ctx, p, d); err != nil {
		return nil, err
	}
	return &delegationpb.MsgClaimResponse{}, k.pools.Set(ctx, p.ID, p)
}

// found returns a pool and the delegation of an account in it, which exists.
func (k *Keeper) found(ctx context.Context, pool, delegator string) (p delegation.Pool, d delegation.Delegation,
	err error) {
	if p, err = k.pool(ctx, pool); err != nil {
		return p, d, err
	}
	d, err = k.part(ctx, pool, delegator)
	if err == nil && d.Empty() {
		err = fmt.Errorf("%w: %s in the pool of %s", delegation.ErrNone, delegator, pool)
	}
	return p, d, err
}

// record takes the gas of a record that stays.
func record(ctx context.Context) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(recordGas, "record of a delegation")
}
