// Package wire defines how messages, transactions and addresses of the chain are written. The application and every
// client use it. It executes nothing; that is chain/app.
package wire

import (
	"fmt"
	"os"
	"sync"

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
	consensustypes "github.com/cosmos/cosmos-sdk/x/consensus/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	evidencetypes "github.com/cosmos/cosmos-sdk/x/evidence/types"
	"github.com/cosmos/cosmos-sdk/x/feegrant"
	govtypes "github.com/cosmos/cosmos-sdk/x/gov/types/v1"
	govbeta "github.com/cosmos/cosmos-sdk/x/gov/types/v1beta1"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	"github.com/cosmos/cosmos-sdk/x/tx/signing"
	upgradetypes "github.com/cosmos/cosmos-sdk/x/upgrade/types"
	"github.com/cosmos/gogoproto/proto"

	"github.com/starling-network/starling/chain/account"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/arena/arenapb"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	"github.com/starling-network/starling/chain/x/catalog/catalogpb"
	"github.com/starling-network/starling/chain/x/delegation/delegationpb"
	"github.com/starling-network/starling/chain/x/hosting/hostingpb"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/payout/payoutpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/chain/x/sale/salepb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
)

// Name is the name of the application, and the prefix of account addresses.
const Name = account.Prefix

const (
	validatorPrefix = Name + "valoper"
	consensusPrefix = Name + "valcons"
)

// The SDK stores prefixes and the bond denomination in globals: one application per process.
func init() {
	// Without this variable, the SDK asks the system for the names of the program and of the host with every address that
	// it reads.
	if os.Getenv(sdk.EnvConfigScope) == "" {
		if err := os.Setenv(sdk.EnvConfigScope, Name); err != nil {
			panic(err)
		}
	}
	c := sdk.GetConfig()
	c.SetBech32PrefixForAccount(Name, Name+"pub")
	c.SetBech32PrefixForValidator(validatorPrefix, validatorPrefix+"pub")
	c.SetBech32PrefixForConsensusNode(consensusPrefix, consensusPrefix+"pub")
	c.Seal()
	sdk.DefaultBondDenom = adapter.Denom
}

// Encoding holds the codecs of messages, transactions and addresses.
type Encoding struct {
	Registry types.InterfaceRegistry
	Codec    codec.Codec
	Tx       client.TxConfig

	Accounts, Validators, Consensus address.Codec
}

// Shared is one encoding for the whole process. Nothing changes it.
var Shared = sync.OnceValues(NewEncoding)

// registered adds messages whose packages a client need not link.
var registered []func(types.InterfaceRegistry)

// Register adds messages to all encodings. Only init functions call it: an encoding that exists stays as it is.
func Register(messages ...func(types.InterfaceRegistry)) {
	registered = append(registered, messages...)
}

// NewEncoding returns the encoding of the chain, with all its messages: its own, those of the SDK, and those that
// Register added, which are those of IBC (chain/wire/ibc) in programs that run a chain.
func NewEncoding() (*Encoding, error) {
	e := &Encoding{
		Accounts:   codecaddress.NewBech32Codec(Name),
		Validators: codecaddress.NewBech32Codec(validatorPrefix),
		Consensus:  codecaddress.NewBech32Codec(consensusPrefix),
	}
	var err error
	e.Registry, err = types.NewInterfaceRegistryWithOptions(types.InterfaceRegistryOptions{
		ProtoFiles:     proto.HybridResolver,
		SigningOptions: signing.Options{AddressCodec: exact{e.Accounts}, ValidatorAddressCodec: e.Validators},
	})
	if err != nil {
		return nil, err
	}
	if err := e.Registry.SigningContext().Validate(); err != nil {
		return nil, err
	}
	e.Codec = codec.NewProtoCodec(e.Registry)
	e.Tx = tx.NewTxConfig(e.Codec, tx.DefaultSignModes)
	for _, register := range []func(types.InterfaceRegistry){
		std.RegisterInterfaces, authtypes.RegisterInterfaces, banktypes.RegisterInterfaces, stakingtypes.RegisterInterfaces,
		slashingtypes.RegisterInterfaces,
		distrtypes.RegisterInterfaces, govtypes.RegisterInterfaces, govbeta.RegisterInterfaces, feegrant.RegisterInterfaces,
		evidencetypes.RegisterInterfaces,
		upgradetypes.RegisterInterfaces, consensustypes.RegisterInterfaces,
	} {
		register(e.Registry)
	}
	for _, register := range registered {
		register(e.Registry)
	}
	msgservice.RegisterMsgServiceDesc(e.Registry, &beaconpb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &registrypb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &hostingpb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &marketpb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &rewardpb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &payoutpb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &salepb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &catalogpb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &arenapb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &delegationpb.Msg_serviceDesc)
	msgservice.RegisterMsgServiceDesc(e.Registry, &trainingpb.Msg_serviceDesc)
	return e, nil
}

// exact reads the addresses of signers in the one form that the chain writes, and refuses the capitals that Bech32
// allows too: modules store participants under the text of their address, so another form would be another participant.
type exact struct{ address.Codec }

// StringToBytes implements address.Codec.
func (c exact) StringToBytes(text string) ([]byte, error) {
	b, err := c.Codec.StringToBytes(text)
	if err != nil {
		return nil, err
	}
	if own, err := c.BytesToString(b); err != nil || own != text {
		return nil, fmt.Errorf("the address of a signer is written %s, not %s", own, text)
	}
	return b, nil
}
