package beacon

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
)

// DefaultKeep is how many beacons stay readable unless governance says otherwise, and leastKeep and mostKeep are what
// it may say.
const (
	DefaultKeep = 10_000
	leastKeep   = 100
	mostKeep    = 1_000_000
)

// Censorship is what a proposer pays that leaves out moves which more than two thirds of the power have seen.
type Censorship struct {
	Turns    uint32 `cbor:"1,keyasint"` // in succession, of one account
	Within   int64  `cbor:"2,keyasint"` // blocks after which a turn is forgotten
	SlashPPM uint32 `cbor:"3,keyasint"` // of the validator's stake
}

// DefaultCensorship is in force unless governance says otherwise: a thousandth of the stake for six turns in
// succession.
func DefaultCensorship() Censorship { return Censorship{Turns: 6, Within: 10_000, SlashPPM: 1_000} }

// validate reports why censorship is not what governance may set.
func (c Censorship) validate() error {
	switch {
	case c.Turns < 2 || c.Turns > 1000:
		return fmt.Errorf("%w: %d turns, wanted 2 to 1000", ErrParams, c.Turns)
	case c.Within < 100 || c.Within > mostKeep:
		return fmt.Errorf("%w: turns within %d blocks, wanted 100 to %d", ErrParams, c.Within, mostKeep)
	case c.SlashPPM > 50_000:
		return fmt.Errorf("%w: %d millionths of the stake, at most 50000", ErrParams, c.SlashPPM)
	}
	return nil
}

// censorship is what is in force.
func (k *Keeper) censorship(ctx context.Context) (Censorship, error) {
	c, ok, err := item(ctx, k.censored)
	if !ok {
		c = DefaultCensorship()
	}
	return c, err
}

// kept is how many beacons stay readable.
func (k *Keeper) kept(ctx context.Context) (int64, error) {
	keep, err := k.keep.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return DefaultKeep, nil
	}
	return keep, err
}

// UpdateParams implements beaconpb.MsgServer. What is to be kept no longer is forgotten at once.
func (k *Keeper) UpdateParams(ctx context.Context,
	m *beaconpb.MsgUpdateParams) (*beaconpb.MsgUpdateParamsResponse, error) {
	if err := adapter.OnlyBy(k.authority, m.Authority); err != nil {
		return nil, Refusals.Wrap(err)
	}
	if m.Params.Keep < leastKeep || m.Params.Keep > mostKeep {
		return nil, Refusals.Wrap(fmt.Errorf("%w: %d beacons, wanted %d to %d", ErrParams, m.Params.Keep, leastKeep,
			mostKeep))
	}
	c := Censorship{Turns: m.Params.Turns, Within: m.Params.TurnsWithin, SlashPPM: m.Params.SlashPpm}
	if err := c.validate(); err != nil {
		return nil, Refusals.Wrap(err)
	}
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	return &beaconpb.MsgUpdateParamsResponse{}, errors.Join(
		k.values.Clear(ctx, new(collections.Range[int64]).EndInclusive(height-m.Params.Keep)),
		k.keep.Set(ctx, m.Params.Keep),
		k.censored.Set(ctx, c),
	)
}

// Params implements beaconpb.QueryServer.
func (k *Keeper) Params(ctx context.Context, _ *beaconpb.QueryParamsRequest) (*beaconpb.QueryParamsResponse, error) {
	keep, err := k.kept(ctx)
	if err != nil {
		return nil, err
	}
	c, err := k.censorship(ctx)
	return &beaconpb.QueryParamsResponse{Params: beaconpb.Params{Keep: keep, Turns: c.Turns, TurnsWithin: c.Within,
		SlashPpm: c.SlashPPM}}, err
}
