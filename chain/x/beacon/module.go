package beacon

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
	"google.golang.org/grpc"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
)

// Module wires the keeper into the application.
type Module struct {
	adapter.Module
	keeper *Keeper
}

// NewModule returns the module of a keeper.
func NewModule(k *Keeper) Module {
	return Module{Module: adapter.Module{
		ID: Name, Messages: &beaconpb.Msg_serviceDesc, State: k.Schema,
		Queries: adapter.NewRoutes(beaconpb.NewQueryClient, beaconpb.RegisterQueryHandlerClient),
	}, keeper: k}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	beaconpb.RegisterMsgServer(r, messages{m.keeper})
	beaconpb.RegisterQueryServer(r, queries{m.keeper})
	return nil
}

// Genesis is the state of the module before the first block: the VRF keys of the first validators by consensus address,
// in force from the first block.
func Genesis(keys map[string]ed25519.PublicKey) (json.RawMessage, error) {
	type entry struct {
		Key   []byte `json:"key"`
		Value Key    `json:"value"`
	}
	state := map[string][]entry{}
	for _, validator := range slices.Sorted(maps.Keys(keys)) {
		state["keys"] = append(state["keys"], entry{[]byte(validator), Key{Next: keys[validator]}})
	}
	return json.Marshal(state)
}
