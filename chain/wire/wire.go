// Package wire is how messages, transactions and addresses of the chain are written: what the application and every client
// of it must agree on. It executes nothing; that is chain/app.
package wire

import (
	"cosmossdk.io/core/address"
	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/codec"
	codecaddress "github.com/cosmos/cosmos-sdk/codec/address"
	"github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/std"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/msgservice"
	"github.com/cosmos/cosmos-sdk/x/auth/tx"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	"github.com/cosmos/cosmos-sdk/x/tx/signing"
	"github.com/cosmos/gogoproto/proto"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
)

// Name of the application, and the first part of every address of its accounts.
const Name = "starling"

const (
	validatorPrefix = Name + "valoper"
	consensusPrefix = Name + "valcons"
)

// The SDK keeps prefixes and the bond denomination in globals: one application per process.
func init() {
	c := sdk.GetConfig()
	c.SetBech32PrefixForAccount(Name, Name+"pub")
	c.SetBech32PrefixForValidator(validatorPrefix, validatorPrefix+"pub")
	c.SetBech32PrefixForConsensusNode(consensusPrefix, consensusPrefix+"pub")
	c.Seal()
	sdk.DefaultBondDenom = adapter.Denom
}

// Encoding is how messages, transactions and addresses are written.
type Encoding struct {
	Registry types.InterfaceRegistry
	Codec    codec.Codec
	Tx       client.TxConfig

	Accounts, Validators, Consensus address.Codec
}

// NewEncoding returns the encoding of the chain, with every message that it knows.
func NewEncoding() (*Encoding, error) {
	e := &Encoding{
		Accounts:   codecaddress.NewBech32Codec(Name),
		Validators: codecaddress.NewBech32Codec(validatorPrefix),
		Consensus:  codecaddress.NewBech32Codec(consensusPrefix),
	}
	var err error
	e.Registry, err = types.NewInterfaceRegistryWithOptions(types.InterfaceRegistryOptions{
		ProtoFiles:     proto.HybridResolver,
		SigningOptions: signing.Options{AddressCodec: e.Accounts, ValidatorAddressCodec: e.Validators},
	})
	if err != nil {
		return nil, err
	}
	if err := e.Registry.SigningContext().Validate(); err != nil {
		return nil, err
	}
	e.Codec = codec.NewProtoCodec(e.Registry)
	e.Tx = tx.NewTxConfig(e.Codec, tx.DefaultSignModes)
	std.RegisterInterfaces(e.Registry)
	authtypes.RegisterInterfaces(e.Registry)
	banktypes.RegisterInterfaces(e.Registry)
	stakingtypes.RegisterInterfaces(e.Registry)
	msgservice.RegisterMsgServiceDesc(e.Registry, &beaconpb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &registrypb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &marketpb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &rewardpb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &trainingpb.Msg_serviceDesc)
	return e, nil
}
