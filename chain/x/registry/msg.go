package registry

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/coinstakes"
	"github.com/starling-network/starling/chain/x/registry/fleets"
	"github.com/starling-network/starling/chain/x/registry/quotes"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/fleet"
)

// messages implements registrypb.MsgServer over a keeper.
type messages struct{ *Keeper }

// served answers all messages of the module: those about fleets, about stakes in other coins, and the others.
func served(k *Keeper) registrypb.MsgServer {
	return struct {
		messages
		fleets.Messages
		coinstakes.Staking
		quotes.Attesting
	}{messages{k}, fleets.Messages{List: k.Fleets, Wrap: ErrorTable.Wrap},
		coinstakes.Staking{Book: k.CoinStakes, Wrap: ErrorTable.Wrap},
		quotes.Attesting{List: k.Quotes, Authority: k.authority, Wrap: ErrorTable.Wrap}}
}

// Register implements registrypb.MsgServer.
func (k messages) Register(ctx context.Context, m *registrypb.MsgRegister) (*registrypb.MsgRegisterResponse, error) {
	old, err := k.Get(ctx, m.Sender)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return nil, err
	}
	known := err == nil
	p := m.Rule(old)
	params, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	if p, err = p.TopUp(m.Stake); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if p.Earning {
		if err := k.earns(ctx, m, old, p, params); err != nil {
			return nil, err
		}
	}
	if p, err = registry.Register(p, params, sdk.UnwrapSDKContext(ctx).BlockHeight()); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if known {
		if p = old.Renew(p); fleet.Renew(p) != nil {
			return nil, ErrorTable.Wrap(fleet.Renew(p))
		}
	}
	if p, err = k.name(m.Payee, old, known, p, sdk.UnwrapSDKContext(ctx).BlockHeight()); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if err := k.lock(ctx, m.Sender, m.Stake); err != nil {
		return nil, err
	}
	if err := errors.Join(k.commit(ctx, old, p), k.join(ctx, old, p)); err != nil {
		return nil, err
	}
	return &registrypb.MsgRegisterResponse{}, errors.Join(k.There(ctx, p.ID), k.set(ctx, p))
}

// UpdateAddresses implements registrypb.MsgServer.
func (k messages) UpdateAddresses(ctx context.Context,
	m *registrypb.MsgUpdateAddresses) (*registrypb.MsgUpdateAddressesResponse, error) {
	old, err := k.Get(ctx, m.Sender)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	p, err := old.Moved(m.PeerId, m.Addresses)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &registrypb.MsgUpdateAddressesResponse{}, errors.Join(k.There(ctx, p.ID), k.set(ctx, p))
}

func (k *Keeper) lock(ctx context.Context, sender string, stake uint64) error {
	from, err := sdk.AccAddressFromBech32(sender)
	if err != nil || stake == 0 {
		return err
	}
	if err := k.bank.SendCoinsFromAccountToModule(ctx, from, Name, adapter.Coins(stake)); err != nil {
		return ErrorTable.Wrap(fmt.Errorf("%w: %w", ErrFunds, err))
	}
	return nil
}

func (k *Keeper) set(ctx context.Context, p registry.Participant) error {
	if err := k.put(ctx, p); err != nil {
		return err
	}
	return sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(&registrypb.EventRegistered{Participant: p.ID,
		Stake: p.Stake})
}

// commit starts counting the uptime of a participant that commits to a tier, or stops it.
func (k messages) commit(ctx context.Context, old, p registry.Participant) error {
	switch {
	case p.Tier == registry.NoTier:
		return k.uptimes.Remove(ctx, p.ID)
	case p.Tier == old.Tier:
		return nil
	}
	return k.uptimes.Set(ctx, p.ID, registry.Uptime{From: sdk.UnwrapSDKContext(ctx).BlockHeight()})
}

// Heartbeat implements registrypb.MsgServer.
func (k messages) Heartbeat(ctx context.Context, m *registrypb.MsgHeartbeat) (*registrypb.MsgHeartbeatResponse, error) {
	u, err := k.uptimes.Get(ctx, m.Sender)
	if errors.Is(err, collections.ErrNotFound) {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %s", ErrNoTier, m.Sender))
	}
	if err != nil {
		return nil, err
	}
	params, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	if u, err = u.Heartbeat(params, sdk.UnwrapSDKContext(ctx).BlockHeight()); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &registrypb.MsgHeartbeatResponse{}, k.uptimes.Set(ctx, m.Sender, u)
}

// UpdateParams implements registrypb.MsgServer.
func (k messages) UpdateParams(ctx context.Context,
	m *registrypb.MsgUpdateParams) (*registrypb.MsgUpdateParamsResponse, error) {
	if err := adapter.OnlyBy(k.authority, m.Authority); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	p := m.Params.Rule()
	if err := p.Validate(); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &registrypb.MsgUpdateParamsResponse{}, k.params.Set(ctx, p)
}

// join records which pool a participant names.
func (k messages) join(ctx context.Context, old, p registry.Participant) error {
	if old.Pool == p.Pool {
		return nil
	}
	if old.Pool != "" {
		if err := k.pooled.Remove(ctx, collections.Join(old.Pool, p.ID)); err != nil {
			return err
		}
	}
	if p.Pool == "" {
		return nil
	}
	return k.pooled.Set(ctx, collections.Join(p.Pool, p.ID))
}
