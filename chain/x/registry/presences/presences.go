// Package presences stores whether verifiers answer the audits that are drawn for them.
package presences

import (
	"context"
	"errors"
	"maps"
	"slices"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/registry"
)

// Store is the presences of verifiers for which audits were drawn.
type Store struct {
	collections.Map[string, registry.Presence]
}

// New returns a store inside the store of the module.
func New(b *collections.SchemaBuilder) Store {
	return Store{collections.NewMap(b, collections.NewPrefix(23), "presences", collections.StringKey,
		adapter.Record[registry.Presence]())}
}

// Note changes the presence of a verifier.
func (p Store) Note(ctx context.Context, id string, change func(p *registry.Presence, height int64)) error {
	at, err := p.Get(ctx, id)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	change(&at, sdk.UnwrapSDKContext(ctx).BlockHeight())
	return p.Set(ctx, id, at)
}

// Answered notes that a verifier answered an audit, and what it was paid, unless that was in another coin than the
// network's own.
func (p Store) Answered(ctx context.Context, id string, price uint64, own bool) error {
	return p.Note(ctx, id, func(p *registry.Presence, height int64) {
		if p.Answered = height; own {
			p.Price = price
		}
	})
}

// All returns the presences by verifier.
func (p Store) All(ctx context.Context) (map[string]registry.Presence, error) {
	all := map[string]registry.Presence{}
	return all, p.Walk(ctx, nil, func(id string, at registry.Presence) (bool, error) {
		all[id] = at
		return false, nil
	})
}

// Forget removes the presences that show neither an answer nor a miss any more.
func (p Store) Forget(ctx context.Context, params registry.Params, height int64) error {
	all, err := p.All(ctx)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if answered, missed := all[id].Shows(params, height); answered || missed {
			continue
		}
		if err := p.Remove(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
