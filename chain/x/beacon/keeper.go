package beacon

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cometbft/cometbft/proto/tendermint/crypto"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/x/staking/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	"github.com/starling-network/starling/chain/x/beacon/censorship"
	"github.com/starling-network/starling/protocol/threshold"
)

// Validators provides the keys and operators of validators.
type Validators interface {
	GetPubKeyByConsAddr(context.Context, sdk.ConsAddress) (crypto.PublicKey, error)
	GetValidator(context.Context, sdk.ValAddress) (types.Validator, error)
}

// Keeper reads and writes the beacons and the keys that make them.
type Keeper struct {
	Schema collections.Schema

	authority  string
	validators Validators
	values     collections.Map[int64, canon.Digest]
	keys       collections.Map[[]byte, Key]
	keep       collections.Item[int64]         // number of beacons that stay readable
	members    collections.Map[[]byte, []byte] // keys for rosters, by validator
	ceremony   collections.Item[ceremony]
	groups     collections.Item[groups]
	deals      collections.Map[collections.Pair[uint64, uint64], threshold.Deal] // by epoch and member
	epoch      collections.Sequence                                              // of the latest ceremony
	block      collections.Item[[]byte]                                          // hash of the latest block
	censorship *censorship.Keeper
	rider      Rider
	seen       seen
	known      known
}

// NewKeeper returns a keeper over its own store.
func NewKeeper(s store.KVStoreService, authority string, validators Validators) (*Keeper, error) {
	b := collections.NewSchemaBuilder(s)
	k := &Keeper{
		authority: authority, validators: validators,
		values: collections.NewMap(b, collections.NewPrefix(0), "values", collections.Int64Key,
			adapter.Record[canon.Digest]()),
		keys: collections.NewMap(b, collections.NewPrefix(1), "keys", collections.BytesKey, adapter.Record[Key]()),
		keep: collections.NewItem(b, collections.NewPrefix(2), "keep", collections.Int64Value),

		members:  collections.NewMap(b, collections.NewPrefix(3), "members", collections.BytesKey, collections.BytesValue),
		ceremony: collections.NewItem(b, collections.NewPrefix(4), "ceremony", adapter.Record[ceremony]()),
		groups:   collections.NewItem(b, collections.NewPrefix(5), "groups", adapter.Record[groups]()),
		deals: collections.NewMap(b, collections.NewPrefix(6), "deals",
			collections.PairKeyCodec(collections.Uint64Key, collections.Uint64Key), adapter.Record[threshold.Deal]()),
		epoch: collections.NewSequence(b, collections.NewPrefix(7), "epoch"),
		block: collections.NewItem(b, collections.NewPrefix(8), "block", collections.BytesValue),

		censorship: censorship.NewKeeper(b),
	}
	var err error
	k.Schema, err = b.Build()
	return k, err
}

// Connect makes the keeper judge proposers that leave out moves which most validators have seen, and makes votes carry
// the texts of another module.
func (k *Keeper) Connect(j censorship.Judge, r Rider) {
	k.rider = r
	k.censorship.Connect(j)
}

// Rider is another module whose texts votes carry.
type Rider interface {
	// Speak is what a validator adds to its vote; seed is secret.
	Speak(ctx context.Context, validator, seed []byte) ([]byte, error)
	// Fit reports whether a validator may add a text to its vote.
	Fit(ctx context.Context, validator, text []byte) (bool, error)
	// Count processes the texts of the votes for the block before. powers are those of all validators.
	Count(ctx context.Context, height int64, votes []Said, powers []abci.Validator) error
}

// Said is the text of a vote, and its validator.
type Said struct {
	Validator abci.Validator
	Text      []byte
}

// At returns the beacon of a block; the zero digest if the block has none or it is no longer kept.
func (k *Keeper) At(ctx context.Context, height int64) (canon.Digest, error) {
	v, err := k.values.Get(ctx, height)
	if errors.Is(err, collections.ErrNotFound) {
		return canon.Digest{}, nil
	}
	return v, err
}

// key returns the VRF key of a validator for the votes of a height; nil if it has none.
func (k *Keeper) key(ctx context.Context, validator []byte, height int64) ([]byte, error) {
	key, err := k.keys.Get(ctx, validator)
	if errors.Is(err, collections.ErrNotFound) {
		return nil, nil
	}
	return key.At(height), err
}

// record stores the beacon of a block and deletes the oldest.
func (k *Keeper) record(ctx context.Context, height int64, value canon.Digest) error {
	keep, err := k.kept(ctx)
	if err != nil {
		return err
	}
	if err := k.values.Remove(ctx, height-keep); err != nil {
		return err
	}
	return k.values.Set(ctx, height, value)
}

// messages implements beaconpb.MsgServer over a keeper, and queries implements beaconpb.QueryServer.
type (
	messages struct{ *Keeper }
	queries  struct{ *Keeper }
)

// SetVRFKey implements beaconpb.MsgServer.
func (k messages) SetVRFKey(ctx context.Context, m *beaconpb.MsgSetVRFKey) (*beaconpb.MsgSetVRFKeyResponse, error) {
	validator, err := k.operated(ctx, m.Sender)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if len(m.PublicKey) != 32 {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %d bytes instead of 32", ErrKey, len(m.PublicKey)))
	}
	key, err := k.keys.Get(ctx, validator)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return nil, err
	}
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	return &beaconpb.MsgSetVRFKeyResponse{}, k.keys.Set(ctx, validator, key.Set(m.PublicKey, height))
}

// operated returns the consensus address of the validator that an account operates.
func (k messages) operated(ctx context.Context, account string) ([]byte, error) {
	address, err := sdk.AccAddressFromBech32(account)
	if err != nil {
		return nil, err
	}
	v, err := k.validators.GetValidator(ctx, sdk.ValAddress(address))
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNotValidator, account)
	}
	return v.GetConsAddr()
}

// Beacon implements beaconpb.QueryServer.
func (k queries) Beacon(ctx context.Context, q *beaconpb.QueryBeaconRequest) (*beaconpb.QueryBeaconResponse, error) {
	height := q.Height
	if height == 0 {
		height = sdk.UnwrapSDKContext(ctx).BlockHeight()
	}
	keep, err := k.kept(ctx)
	if err != nil {
		return nil, err
	}
	v, err := k.values.Get(ctx, height)
	if errors.Is(err, collections.ErrNotFound) {
		return nil, status.Errorf(codes.NotFound, "%v: %d; the latest %d are kept, from block 2 on", ErrNoBeacon, height,
			keep)
	}
	return &beaconpb.QueryBeaconResponse{Height: height, Value: v[:]}, err
}

// Key implements beaconpb.QueryServer.
func (k queries) Key(ctx context.Context, q *beaconpb.QueryKeyRequest) (*beaconpb.QueryKeyResponse, error) {
	public, err := k.key(ctx, q.Validator, sdk.UnwrapSDKContext(ctx).BlockHeight())
	return &beaconpb.QueryKeyResponse{PublicKey: public}, err
}
