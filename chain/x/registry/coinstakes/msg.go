package coinstakes

import (
	"context"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
)

// Staking answers the messages about stakes in other coins.
type Staking struct {
	Book Book
	Wrap func(error) error // gives an error its code
}

// StakeCoin implements registrypb.MsgServer.
func (s Staking) StakeCoin(ctx context.Context,
	m *registrypb.MsgStakeCoin) (*registrypb.MsgStakeCoinResponse, error) {
	return &registrypb.MsgStakeCoinResponse{}, s.Wrap(s.Book.add(ctx, m))
}

// UnstakeCoin implements registrypb.MsgServer.
func (s Staking) UnstakeCoin(ctx context.Context,
	m *registrypb.MsgUnstakeCoin) (*registrypb.MsgUnstakeCoinResponse, error) {
	height, err := s.Book.leave(ctx, m)
	return &registrypb.MsgUnstakeCoinResponse{Height: height}, s.Wrap(err)
}

// CoinStakes implements a query of registrypb.QueryServer.
func (l Book) CoinStakes(ctx context.Context,
	m *registrypb.QueryCoinStakesRequest) (*registrypb.QueryCoinStakesResponse, error) {
	r := &registrypb.QueryCoinStakesResponse{}
	all, err := l.list(ctx, m.Id, m.After, m.AfterDenom, adapter.Most(m.Limit))
	for _, s := range all {
		r.Stakes = append(r.Stakes, canon.MustMarshal(s))
	}
	return r, err
}
