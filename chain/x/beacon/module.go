package beacon

import (
	"encoding/json"
	"fmt"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/module"
	"google.golang.org/grpc"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
)

// Module wires the keeper into the application.
type Module struct {
	adapter.Module
	keeper *Keeper
}

var _ module.HasGenesis = Module{}

// NewModule returns the module of a keeper.
func NewModule(k *Keeper) Module {
	return Module{Module: adapter.Module{ID: Name, Messages: &beaconpb.Msg_serviceDesc}, keeper: k}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	beaconpb.RegisterMsgServer(r, m.keeper)
	beaconpb.RegisterQueryServer(r, m.keeper)
	return nil
}

// DefaultGenesis has no keys.
func (Module) DefaultGenesis(cdc codec.JSONCodec) json.RawMessage {
	return cdc.MustMarshalJSON(&beaconpb.GenesisState{})
}

// ValidateGenesis checks the lengths of keys and addresses.
func (Module) ValidateGenesis(cdc codec.JSONCodec, _ client.TxEncodingConfig, raw json.RawMessage) error {
	var g beaconpb.GenesisState
	if err := cdc.UnmarshalJSON(raw, &g); err != nil {
		return err
	}
	for _, key := range g.Keys {
		if len(key.Validator) != 20 || len(key.PublicKey) != 32 {
			return fmt.Errorf("%w: genesis key of validator %X", ErrKey, key.Validator)
		}
	}
	return nil
}

// InitGenesis sets the keys of the first validators, in force from the first block.
func (m Module) InitGenesis(ctx sdk.Context, cdc codec.JSONCodec, raw json.RawMessage) {
	var g beaconpb.GenesisState
	cdc.MustUnmarshalJSON(raw, &g)
	for _, key := range g.Keys {
		if err := m.keeper.keys.Set(ctx, key.Validator, Key{Next: key.PublicKey}); err != nil {
			panic(err)
		}
	}
}

// ExportGenesis returns the keys; beacons belong to the blocks of the old chain.
func (m Module) ExportGenesis(ctx sdk.Context, cdc codec.JSONCodec) json.RawMessage {
	var g beaconpb.GenesisState
	err := m.keeper.keys.Walk(ctx, nil, func(validator []byte, key Key) (bool, error) {
		g.Keys = append(g.Keys, beaconpb.ValidatorKey{Validator: validator, PublicKey: key.Next})
		return false, nil
	})
	if err != nil {
		panic(err)
	}
	return cdc.MustMarshalJSON(&g)
}
