package registry

import (
	"context"
	"errors"

	"cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/fleet"
)

// Lead returns the participant that a participant works for: the owner of a machine, also if that is none, or itself.
func (k Paying) Lead(ctx context.Context, p registry.Participant) (registry.Participant, error) {
	id := p.OwnerID()
	if id == p.ID {
		return p, nil
	}
	owner, err := k.Get(ctx, id)
	if errors.Is(err, ErrUnknown) {
		return registry.Participant{ID: id}, nil
	}
	return owner, err
}

// Owner returns the owner of a machine, or any other account itself.
func (k Paying) Owner(ctx context.Context, id string) (string, error) {
	p, known, err := surroundings(k).Find(ctx, id)
	if err != nil || !known {
		return id, err
	}
	return p.OwnerID(), nil
}

// fleeting is the surroundings of the list of fleets.
type fleeting struct{ surroundings }

// Replace implements fleets.Surroundings. Uptime is no longer counted for a machine that commits to no tier.
func (k fleeting) Replace(ctx context.Context, old, p registry.Participant) error {
	if p.Tier == registry.NoTier && old.Tier != registry.NoTier {
		if err := k.uptimes.Remove(ctx, p.ID); err != nil {
			return err
		}
	}
	return errors.Join(k.plan(ctx, old, p), k.set(ctx, p))
}

// Forget implements fleets.Surroundings, for an invitation, which has no role.
func (k fleeting) Forget(ctx context.Context, id string) error { return k.participants.Remove(ctx, id) }

// Lock implements fleets.Surroundings.
func (k fleeting) Lock(ctx context.Context, account string, stake uint64) error {
	return k.lock(ctx, account, stake)
}

// Return implements fleets.Surroundings.
func (k fleeting) Return(ctx context.Context, account string, stake uint64) error {
	to, err := sdk.AccAddressFromBech32(account)
	if err != nil {
		return err
	}
	return k.bank.SendCoinsFromModuleToAccount(ctx, Name, to, adapter.Coins(stake))
}

// Rich implements fleets.Surroundings.
func (k fleeting) Rich(ctx context.Context, account sdk.AccAddress) bool {
	return k.bank.SpendableCoin(ctx, account, adapter.Denom).Amount.GT(math.NewInt(fleet.MostCoins))
}

// Withdraw implements fleets.Surroundings.
func (k fleeting) Withdraw(ctx context.Context, id string) error { return k.runs.Withdraw(ctx, id) }
