package validators

import (
	"context"
	"errors"
	"fmt"

	rpcclient "github.com/cometbft/cometbft/rpc/client"
	sdk "github.com/cosmos/cosmos-sdk/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/client/query"
)

// Peer is a process of another validator that a validator is connected to.
type Peer struct {
	NodeID   string `json:"node_id"`
	Name     string `json:"name"`    // in its own words
	Address  string `json:"address"` // it is connected from, or at
	Dialled  bool   `json:"dialled"` // by the validator that was asked
	Sent     int64  `json:"sent_bytes"`
	Received int64  `json:"received_bytes"`
}

// Peers are those of the validator that is asked.
func (v Validators) Peers(ctx context.Context) ([]Peer, error) {
	n, ok := v.rpc.(rpcclient.NetworkClient)
	if !ok {
		return nil, errors.New("client: the connection tells nothing of peers")
	}
	info, err := n.NetInfo(ctx)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	all := make([]Peer, 0, len(info.Peers))
	for _, p := range info.Peers {
		s := p.ConnectionStatus
		all = append(all, Peer{NodeID: string(p.NodeInfo.ID()), Name: p.NodeInfo.Moniker, Address: p.RemoteIP,
			Dialled: p.IsOutbound, Sent: s.SendMonitor.Bytes, Received: s.RecvMonitor.Bytes})
	}
	return all, nil
}

// Rewards are what a validator has earned of the fees of transactions, in uzen, and not withdrawn.
type Rewards struct {
	Operator   string // starlingvaloper1...
	Rewards    uint64 // of it and of those who delegate to it
	Commission uint64 // its own share of theirs
}

// Rewards are those of the validator that an account operates; ErrNotFound if it operates none.
func (v Validators) Rewards(ctx context.Context, account string) (r Rewards, err error) {
	address, err := sdk.AccAddressFromBech32(account)
	if err != nil {
		return r, err
	}
	r.Operator = sdk.ValAddress(address).String()
	q := distrtypes.NewQueryClient(v.queries)
	all, err := q.ValidatorOutstandingRewards(ctx,
		&distrtypes.QueryValidatorOutstandingRewardsRequest{ValidatorAddress: r.Operator})
	if err != nil {
		return r, query.Known(err)
	}
	own, err := q.ValidatorCommission(ctx, &distrtypes.QueryValidatorCommissionRequest{ValidatorAddress: r.Operator})
	if err != nil {
		return r, query.Known(err)
	}
	for into, coins := range map[*uint64]sdk.DecCoins{&r.Rewards: all.Rewards.Rewards,
		&r.Commission: own.Commission.Commission} {
		amount := coins.AmountOf(adapter.Denom).TruncateInt()
		if !amount.IsUint64() {
			return r, fmt.Errorf("client: rewards of %s", amount)
		}
		*into = amount.Uint64()
	}
	return r, nil
}
