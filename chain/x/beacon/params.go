package beacon

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	"github.com/starling-network/starling/chain/x/beacon/censorship"
)

// DefaultKeep is how many beacons stay readable unless governance sets another number, between leastKeep and mostKeep.
const (
	DefaultKeep = 10_000
	leastKeep   = 100
	mostKeep    = 1_000_000
)

// kept is how many beacons stay readable.
func (k *Keeper) kept(ctx context.Context) (int64, error) {
	keep, err := k.keep.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return DefaultKeep, nil
	}
	return keep, err
}

// UpdateParams implements beaconpb.MsgServer. It deletes beacons that no longer need to be kept at once.
func (k messages) UpdateParams(ctx context.Context,
	m *beaconpb.MsgUpdateParams) (*beaconpb.MsgUpdateParamsResponse, error) {
	if err := adapter.OnlyBy(k.authority, m.Authority); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if m.Params.Keep < leastKeep || m.Params.Keep > mostKeep {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %d beacons, wanted %d to %d", ErrParams, m.Params.Keep, leastKeep,
			mostKeep))
	}
	c := censorship.Params{Turns: m.Params.Turns, Within: m.Params.TurnsWithin, SlashPPM: m.Params.SlashPpm}
	if err := c.Validate(); err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %w", ErrParams, err))
	}
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	return &beaconpb.MsgUpdateParamsResponse{}, errors.Join(
		k.values.Clear(ctx, new(collections.Range[int64]).EndInclusive(height-m.Params.Keep)),
		k.keep.Set(ctx, m.Params.Keep),
		k.censorship.SetParams(ctx, c),
	)
}

// Params implements beaconpb.QueryServer.
func (k queries) Params(ctx context.Context, _ *beaconpb.QueryParamsRequest) (*beaconpb.QueryParamsResponse, error) {
	keep, err := k.kept(ctx)
	if err != nil {
		return nil, err
	}
	c, err := k.censorship.Params(ctx)
	return &beaconpb.QueryParamsResponse{Params: beaconpb.Params{Keep: keep, Turns: c.Turns, TurnsWithin: c.Within,
		SlashPpm: c.SlashPPM}}, err
}
