package chain

import (
	"context"

	abcicli "github.com/cometbft/cometbft/abci/client"
	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cometbft/cometbft/proxy"
	"github.com/cosmos/cosmos-sdk/server"

	"github.com/starling-network/starling/chain/app"
)

// Calls is how CometBFT calls an application in its process. Consensus and the pool of transactions take turns, as the
// SDK's own server has them; queries and reads of snapshots need no turn, so that no query delays a block
// (docs/adr/0040-queries-beside-consensus.md). The signature of a transaction is verified before it waits for its turn,
// by as many goroutines as bring transactions.
func Calls(a *app.App) proxy.ClientCreator {
	return calls{proxy.NewLocalClientCreator(server.NewCometABCIWrapper(a)), a}
}

// calls are those of CometBFT to the application of this validator, or to what its act makes of it.
func (c Config) calls(a *app.App) proxy.ClientCreator {
	if c.Act == nil {
		return Calls(a)
	}
	return calls{proxy.NewLocalClientCreator(c.Act(server.NewCometABCIWrapper(a))), a}
}

type calls struct {
	proxy.ClientCreator
	app *app.App
}

// NewABCIClient implements proxy.ClientCreator.
func (c calls) NewABCIClient() (abcicli.Client, error) {
	in, err := c.ClientCreator.NewABCIClient()
	return caller{in, c.app}, err
}

type caller struct {
	abcicli.Client
	app *app.App
}

// CheckTx implements abcicli.Client.
func (c caller) CheckTx(ctx context.Context, r *abci.RequestCheckTx) (*abci.ResponseCheckTx, error) {
	c.early(r)
	return c.Client.CheckTx(ctx, r)
}

// CheckTxAsync implements abcicli.Client.
func (c caller) CheckTxAsync(ctx context.Context, r *abci.RequestCheckTx) (*abcicli.ReqRes, error) {
	c.early(r)
	return c.Client.CheckTxAsync(ctx, r)
}

// Query implements abcicli.Client.
func (c caller) Query(ctx context.Context, r *abci.RequestQuery) (*abci.ResponseQuery, error) {
	return c.app.Query(ctx, r)
}

// ListSnapshots implements abcicli.Client.
func (c caller) ListSnapshots(_ context.Context, r *abci.RequestListSnapshots) (*abci.ResponseListSnapshots, error) {
	return c.app.ListSnapshots(r)
}

// LoadSnapshotChunk implements abcicli.Client.
func (c caller) LoadSnapshotChunk(_ context.Context,
	r *abci.RequestLoadSnapshotChunk) (*abci.ResponseLoadSnapshotChunk, error) {
	return c.app.LoadSnapshotChunk(r)
}

func (c caller) early(r *abci.RequestCheckTx) {
	if r.Type == abci.CheckTxType_New {
		c.app.Early(r.Tx)
	}
}
