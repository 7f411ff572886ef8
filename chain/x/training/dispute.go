package training

import (
	"context"
	"errors"

	"github.com/starling-network/starling/chain/x/training/trainingpb"
)

var errPending = errors.New("pending")

func (k *Keeper) Challenge(ctx context.Context, m *trainingpb.MsgChallenge) (*trainingpb.MsgChallengeResponse, error) {
	return nil, errPending
}

func (k *Keeper) Move(ctx context.Context, m *trainingpb.MsgMove) (*trainingpb.MsgMoveResponse, error) {
	return nil, errPending
}

func (q Queries) Disputes(ctx context.Context, m *trainingpb.QueryDisputesRequest) (*trainingpb.QueryDisputesResponse, error) {
	return nil, errPending
}
