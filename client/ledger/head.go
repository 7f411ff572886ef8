// Package ledger reads the records of a chain from a validator: its height, blocks with their transactions, the
// transactions of an account, and the beacon of each block. Package module reads the state.
package ledger

import (
	"context"
	"fmt"
	"time"

	rpcclient "github.com/cometbft/cometbft/rpc/client"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"google.golang.org/grpc"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	"github.com/starling-network/starling/client/query"
)

// Ledger reads the chain of the validator at the other end of a connection.
type Ledger struct {
	rpc     rpcclient.Client
	queries grpc.ClientConnInterface
}

// New returns what reads over a connection to a validator, which also answers queries of state.
func New(rpc rpcclient.Client, queries grpc.ClientConnInterface) Ledger { return Ledger{rpc, queries} }

// Head is where a validator's copy of the chain stands, and what the validator is.
type Head struct {
	ChainID    string
	Height     int64     // of the last block whose state can be asked for
	Time       time.Time // of the last block, as the validators agreed on it: that one, or one that is being executed
	CatchingUp bool      // the validator is behind the others
	NodeID     string
	Power      int64  // of the validator in consensus; 0: it does not vote
	Address    string // of its votes: hexadecimal
	Consensus  string // the same address in the form of the chain: starlingvalcons1...
	App        string // version of the application: wire.Version of its binary
	Peers      int    // other validators' processes that it is connected to
}

// Head asks the validator where it stands.
func (l Ledger) Head(ctx context.Context) (Head, error) {
	s, err := l.rpc.Status(ctx)
	if err != nil {
		return Head{}, fmt.Errorf("client: %w", err)
	}
	info, err := l.rpc.ABCIInfo(ctx)
	if err != nil {
		return Head{}, fmt.Errorf("client: %w", err)
	}
	h := Head{
		ChainID: s.NodeInfo.Network, Height: min(s.SyncInfo.LatestBlockHeight, info.Response.LastBlockHeight),
		Time: s.SyncInfo.LatestBlockTime, CatchingUp: s.SyncInfo.CatchingUp,
		NodeID: string(s.NodeInfo.ID()), Power: s.ValidatorInfo.VotingPower, Address: s.ValidatorInfo.Address.String(),
		Consensus: sdk.ConsAddress(s.ValidatorInfo.Address).String(), App: info.Response.Version,
	}
	if n, ok := l.rpc.(rpcclient.NetworkClient); ok {
		if net, err := n.NetInfo(ctx); err == nil {
			h.Peers = net.NPeers
		}
	}
	return h, nil
}

// Beacon is the beacon of a block; of the latest for height 0.
func (l Ledger) Beacon(ctx context.Context, height int64) (canon.Digest, error) {
	r, err := beaconpb.NewQueryClient(l.queries).Beacon(ctx, &beaconpb.QueryBeaconRequest{Height: height})
	if err != nil {
		return canon.Digest{}, query.Known(err)
	}
	if len(r.Value) != len(canon.Digest{}) {
		return canon.Digest{}, fmt.Errorf("client: a beacon of %d bytes", len(r.Value))
	}
	return canon.Digest(r.Value), nil
}
