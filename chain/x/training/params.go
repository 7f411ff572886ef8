package training

import (
	"context"
	"errors"

	"cosmossdk.io/collections"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/reward/penalty"
)

// Params are the parameters in force.
func (k *Keeper) Params(ctx context.Context) (penalty.Params, error) {
	p, err := k.params.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return penalty.Default(), nil
	}
	return p, err
}

// UpdateParams implements trainingpb.MsgServer.
func (k messages) UpdateParams(ctx context.Context,
	m *trainingpb.MsgUpdateParams) (*trainingpb.MsgUpdateParamsResponse, error) {
	p := penalty.Params{
		SlashPPM: m.Params.SlashPpm, BountyPPM: m.Params.BountyPpm, UnopenedPPM: m.Params.UnopenedPpm,
		FirstPPM: m.Params.FirstPpm, MemoryBlocks: m.Params.MemoryBlocks,
	}
	if err := errors.Join(adapter.OnlyBy(k.authority, m.Authority), p.Validate()); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &trainingpb.MsgUpdateParamsResponse{}, k.params.Set(ctx, p)
}
