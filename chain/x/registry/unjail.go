package registry

import (
	"context"
	"errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/registry/registrypb"
)

// Unjail implements registrypb.MsgServer.
func (k messages) Unjail(ctx context.Context, m *registrypb.MsgUnjail) (*registrypb.MsgUnjailResponse, error) {
	old, err := k.Get(ctx, m.Sender)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	params, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	p, err := old.Unjail(params, sdk.UnwrapSDKContext(ctx).BlockHeight())
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &registrypb.MsgUnjailResponse{}, errors.Join(k.There(ctx, p.ID), k.set(ctx, p), k.Earners.Note(ctx, p))
}
