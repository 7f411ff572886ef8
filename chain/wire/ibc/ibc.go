// Package ibc adds the messages of IBC to the encoding of the chain. Programs that run a chain or carry coins between
// chains import it. It is apart from chain/wire because the types of ibc-go import the server of the Cosmos SDK, which
// a client of the chain does not need.
package ibc

import (
	transfertypes "github.com/cosmos/ibc-go/v11/modules/apps/transfer/types"
	ibctypes "github.com/cosmos/ibc-go/v11/modules/core/types"
	tendermint "github.com/cosmos/ibc-go/v11/modules/light-clients/07-tendermint"

	"github.com/starling-network/starling/chain/wire"
)

func init() {
	wire.Register(ibctypes.RegisterInterfaces, transfertypes.RegisterInterfaces, tendermint.RegisterInterfaces)
}
