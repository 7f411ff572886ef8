package delegation

import (
	"context"
	"errors"

	xregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/delegation"
	"github.com/starling-network/starling/protocol/registry"
)

// Paying is the registry for the modules that match, pay and slash participants: with delegated stake in addition to
// their own.
type Paying struct {
	xregistry.Paying
	Pools *Keeper
}

// Pay pays an account for work, from the account of a module. The delegators of a participant have their part first.
func (k Paying) Pay(ctx context.Context, module, id string, c coin.Coin, amount uint64) error {
	rest, err := k.Pools.share(ctx, module, id, c, amount)
	if err != nil || rest == 0 {
		return err
	}
	return k.Paying.Pay(ctx, module, id, c, rest)
}

// Take slashes an amount of a participant's own stake, and the same part of the stake that is delegated to it.
func (k Paying) Take(ctx context.Context, id, to string, amount uint64) error {
	p, err := k.Get(ctx, id)
	if err != nil {
		return err
	}
	return errors.Join(k.Pools.slash(ctx, id, amount, p.Stake), k.Paying.Take(ctx, id, to, amount))
}

// Backing is the delegated stake of a participant that counts where the seats of orders are drawn, in uzen.
func (k Paying) Backing(ctx context.Context, p registry.Participant) (uint64, error) {
	if !open(p) {
		return 0, nil
	}
	pool, err := k.Pools.pool(ctx, p.ID)
	if errors.Is(err, delegation.ErrNoPool) {
		return 0, nil
	}
	return pool.Backing(p.Firm()), err
}
