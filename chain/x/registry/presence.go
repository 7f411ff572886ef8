package registry

import (
	"context"
	"errors"
	"maps"
	"slices"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/protocol/registry"
)

// presences are the presences of verifiers for which audits were drawn.
type presences struct {
	collections.Map[string, registry.Presence]
}

// note changes the presence of a verifier.
func (p presences) note(ctx context.Context, id string, change func(p *registry.Presence, height int64)) error {
	at, err := p.Get(ctx, id)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	change(&at, sdk.UnwrapSDKContext(ctx).BlockHeight())
	return p.Set(ctx, id, at)
}

func (p presences) all(ctx context.Context) (map[string]registry.Presence, error) {
	all := map[string]registry.Presence{}
	return all, p.Walk(ctx, nil, func(id string, at registry.Presence) (bool, error) {
		all[id] = at
		return false, nil
	})
}

// forget removes the presences that show neither an answer nor a miss any more.
func (p presences) forget(ctx context.Context, params registry.Params, height int64) error {
	all, err := p.all(ctx)
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
