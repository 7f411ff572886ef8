package app

import (
	"cmp"
	"context"
	"fmt"

	errorsmod "cosmossdk.io/errors"
	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cosmos/cosmos-sdk/baseapp"
	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
)

// Limits of queries and simulations, which need no account. They run concurrently with consensus (chain.Calls), so that
// all of them together take a few processors and delay no block.
const (
	QueryGas       = 300_000_000 // of a query: about 100 MB read
	SimulatedGas   = 300_000_000 // of a simulated transaction
	SimulatedBytes = 4 << 20     // of a simulated transaction
	answered       = 8           // queries answered at a time
	simulations    = 1           // transactions simulated at a time
)

// Query implements servertypes.ABCI. It may be called while a block is executed, and does not wait for the block.
func (a *App) Query(ctx context.Context, req *abci.RequestQuery) (*abci.ResponseQuery, error) {
	if p := baseapp.SplitABCIQueryPath(req.Path); len(p) >= 2 && p[0] == baseapp.QueryPathApp && p[1] == "simulate" {
		return a.simulateQuery(req.Data), nil
	}
	back, err := a.asked.Take(ctx)
	if err != nil {
		return sdkerrors.QueryResult(err, false), nil
	}
	defer back()
	latest := *req
	latest.Height = cmp.Or(req.Height, a.reads.LatestVersion())
	return a.BaseApp.Query(ctx, &latest)
}

// Commit implements abci.Application.
func (a *App) Commit() (*abci.ResponseCommit, error) {
	r, err := a.BaseApp.Commit()
	a.reads.Committed(a.LastBlockHeight())
	return r, err
}

// simulateQuery answers a simulation.
func (a *App) simulateQuery(tx []byte) *abci.ResponseQuery {
	gas, result, err := a.Simulate(tx)
	if err != nil {
		return sdkerrors.QueryResult(errorsmod.Wrap(err, "failed to simulate tx"), false)
	}
	value, err := codec.ProtoMarshalJSON(&sdk.SimulationResponse{GasInfo: gas, Result: result}, a.Registry)
	if err != nil {
		return sdkerrors.QueryResult(errorsmod.Wrap(err, "failed to JSON encode simulation response"), false)
	}
	return &abci.ResponseQuery{Codespace: sdkerrors.RootCodespace, Height: a.LastBlockHeight(), Value: value}
}

// simulation waits for the turn of a simulation. The decorator limited bounds its messages and gas.
func (a *App) simulation(ctx context.Context, tx []byte) (back func(), err error) {
	if len(tx) > SimulatedBytes {
		return nil, errorsmod.Wrap(sdkerrors.ErrTxTooLarge,
			fmt.Sprintf("%d bytes, at most %d are simulated", len(tx), SimulatedBytes))
	}
	return a.simulated.Take(ctx)
}
