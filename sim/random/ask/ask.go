// Package ask answers queries about the state of a random play, in the middle of a block or after it.
package ask

import (
	"context"
	"errors"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtbytes "github.com/cometbft/cometbft/libs/bytes"
	rpcclient "github.com/cometbft/cometbft/rpc/client"
	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	sdkclient "github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/testutil/simsx"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/client/wallet"
)

// Connection answers queries about the state of a context: after a block, or in the middle of it. It is all that a
// client.Client needs of CometBFT here.
type Connection struct {
	rpcclient.Client // of which only queries are used
	App              *app.App
	Ctx              sdk.Context
}

// GRPC is the connection for queries of the SDK's modules.
func (c Connection) GRPC() sdkclient.Context {
	return sdkclient.Context{}.WithClient(c).WithCodec(c.App.Codec).WithInterfaceRegistry(c.App.Registry)
}

// ABCIQueryWithOptions implements rpcclient.Client.
func (c Connection) ABCIQueryWithOptions(_ context.Context, path string, data cmtbytes.HexBytes,
	_ rpcclient.ABCIQueryOptions) (*ctypes.ResultABCIQuery, error) {
	query := c.App.GRPCQueryRouter().Route(path)
	if query == nil {
		return nil, errors.New("random: no query " + path)
	}
	r, err := query(c.Ctx, &abci.RequestQuery{Path: path, Data: data})
	if err != nil {
		return nil, err
	}
	return &ctypes.ResultABCIQuery{Response: *r}, nil
}

// Keys returns a function that finds the key of an account, nil if there is none.
func Keys(data *simsx.ChainDataSource) func(address string) wallet.Signer {
	return func(address string) wallet.Signer {
		if !data.HasAccount(address) {
			return nil
		}
		return wallet.NewKey(data.GetAccount(nil, address).PrivKey.Bytes())
	}
}
