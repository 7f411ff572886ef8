package chain

import (
	"context"

	abcicli "github.com/cometbft/cometbft/abci/client"
	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cometbft/cometbft/proxy"
	"github.com/cosmos/cosmos-sdk/server"

	"github.com/starling-network/starling/chain/app"
)

// Calls returns the connections from CometBFT to an application in the same process. Calls of consensus and of the
// transaction pool are serialized, as in the SDK's server. Queries and reads of snapshots are not, so that no query
// delays a block (docs/adr/0040-queries-beside-consensus.md). CheckTx verifies the signature of a transaction before it
// takes the lock, so that signatures are verified in parallel.
func Calls(a *app.App) proxy.ClientCreator {
	return calls{proxy.NewLocalClientCreator(server.NewCometABCIWrapper(a)), a}
}

// calls returns the connections from CometBFT to the application of this validator, wrapped by c.Act if that is set.
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
