package bridged

import (
	"context"
	"errors"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtbytes "github.com/cometbft/cometbft/libs/bytes"
	"github.com/cometbft/cometbft/libs/pubsub/query"
	"github.com/cometbft/cometbft/p2p"
	rpcclient "github.com/cometbft/cometbft/rpc/client"
	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/bridge"
	"github.com/starling-network/starling/client/transaction"
)

type built = []sdk.Msg

// relay is a process that relays. Once it is killed it learns and sends nothing.
type relay struct {
	play   *play
	ctx    context.Context
	cancel context.CancelFunc
}

// killed draws whether the relay is killed now.
func (r *relay) killed(percent int) bool {
	if r.ctx.Err() == nil && r.play.killing && r.play.Often(percent) {
		r.play.kills["relay"]++
		r.cancel()
	}
	return r.ctx.Err() != nil
}

// start starts a relay, which knows the channel on the first chain only.
func (p *play) start() (r *relay, a, b *bridge.Shore) {
	r = &relay{play: p}
	r.ctx, r.cancel = context.WithCancel(p.ctx)
	at := func(s *shore) *bridge.Shore {
		n := &node{relay: r, shore: s}
		return &bridge.Shore{Account: client.NewWithSubmitter(n, account(relayer), n.submit), RPC: n}
	}
	return r, at(p.shores[0]), at(p.shores[1])
}

// node is a validator of a chain, as the relay sees it.
type node struct {
	rpcclient.Client
	relay *relay
	shore *shore
}

// submit is a Submitter: it waits until the messages are in a block.
func (n *node) submit(ctx context.Context, msgs ...sdk.Msg) (r transaction.Result, err error) {
	if n.relay.killed(4) {
		return r, errKilled
	}
	var tx []byte
	for {
		tx, err = n.shore.send(ctx, account(relayer), msgs)
		if e, ok := errors.AsType[*transaction.Error](err); ok && transaction.OutOfTurn(e.Space, e.Code) {
			n.relay.play.tick(n.shore) // a relay that was killed has sent a message
			continue
		}
		if err != nil {
			return r, err
		}
		break
	}
	for n.shore.done[string(tx)] == nil {
		if n.relay.killed(4) {
			return r, errKilled
		}
		n.relay.play.tick(n.shore)
	}
	done := n.shore.done[string(tx)]
	delete(n.shore.done, string(tx))
	if n.relay.killed(4) {
		return r, errKilled
	}
	return transaction.Result{Height: n.shore.Height, Events: done.Events, Data: done.Data},
		transaction.Refusal(done.Codespace, done.Code, done.Log)
}

// Status implements rpcclient.Client. A relay that looks again waits for a block.
func (n *node) Status(context.Context) (*ctypes.ResultStatus, error) {
	if n.shore.asked {
		n.shore.asked = false
		n.relay.play.tick(n.shore)
	}
	return &ctypes.ResultStatus{NodeInfo: p2p.DefaultNodeInfo{Network: n.shore.ChainID}, SyncInfo: ctypes.SyncInfo{
		LatestBlockHeight: n.shore.Height, LatestBlockTime: n.shore.Decided.Time}}, n.relay.ctx.Err()
}

// Commit implements rpcclient.Client.
func (n *node) Commit(_ context.Context, height *int64) (*ctypes.ResultCommit, error) {
	if *height > n.shore.Height {
		return nil, errors.New("bridged: no such block")
	}
	return &ctypes.ResultCommit{SignedHeader: *n.shore.headers[*height], CanonicalCommit: true}, n.relay.ctx.Err()
}

// Validators implements rpcclient.Client.
func (n *node) Validators(_ context.Context, height *int64, _, _ *int) (*ctypes.ResultValidators, error) {
	set := n.shore.set.Copy().Validators
	return &ctypes.ResultValidators{BlockHeight: *height, Validators: set, Count: len(set), Total: len(set)},
		n.relay.ctx.Err()
}

// ABCIInfo implements rpcclient.Client.
func (n *node) ABCIInfo(context.Context) (*ctypes.ResultABCIInfo, error) {
	n.shore.asked = true
	r, err := n.shore.App.Info(&abci.RequestInfo{})
	if err != nil {
		return nil, err
	}
	return &ctypes.ResultABCIInfo{Response: *r}, n.relay.ctx.Err()
}

// ABCIQueryWithOptions implements rpcclient.Client.
func (n *node) ABCIQueryWithOptions(ctx context.Context, path string, data cmtbytes.HexBytes,
	o rpcclient.ABCIQueryOptions) (*ctypes.ResultABCIQuery, error) {
	if err := n.relay.ctx.Err(); err != nil {
		return nil, err
	}
	r, err := n.shore.App.Query(ctx, &abci.RequestQuery{Path: path, Data: data, Height: o.Height, Prove: o.Prove})
	if err != nil {
		return nil, err
	}
	return &ctypes.ResultABCIQuery{Response: *r}, nil
}

// TxSearch implements rpcclient.Client.
func (n *node) TxSearch(ctx context.Context, search string, _ bool, _, _ *int,
	_ string) (*ctypes.ResultTxSearch, error) {
	q, err := query.New(search)
	if err != nil {
		return nil, err
	}
	found, err := n.shore.index.Search(ctx, q)
	r := &ctypes.ResultTxSearch{TotalCount: len(found)}
	for _, f := range found {
		r.Txs = append(r.Txs, &ctypes.ResultTx{Height: f.Height, Index: f.Index, Tx: f.Tx, TxResult: f.Result})
	}
	return r, errors.Join(err, n.relay.ctx.Err())
}
