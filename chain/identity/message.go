package identity

import (
	"cosmossdk.io/math"
	cryptocodec "github.com/cosmos/cosmos-sdk/crypto/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
)

// SelfStake is the stake of every validator of the genesis, in uzen.
const SelfStake = 100_000_000

// Creation is the message with which an operator creates its validator, with a stake in uzen.
func (k Keys) Creation(moniker string, stake uint64) (*stakingtypes.MsgCreateValidator, error) {
	public, err := cryptocodec.FromCmtPubKeyInterface(k.Consensus.PubKey())
	if err != nil {
		return nil, err
	}
	tenth := math.LegacyNewDecWithPrec(1, 1)
	return stakingtypes.NewMsgCreateValidator(k.validator(), public, adapter.Coins(stake)[0],
		stakingtypes.NewDescription(moniker, "", "", "", ""),
		stakingtypes.NewCommissionRates(tenth, tenth, tenth), math.OneInt())
}

// validator is the validator address of the operator.
func (k Keys) validator() string { return sdk.ValAddress(k.Operator.PubKey().Address()).String() }

// Bond returns the messages with which the operator creates its validator on a running chain, with a stake in uzen, and
// registers the validator's key for the beacon. The validator votes from the second block after these messages on.
func (k Keys) Bond(moniker string, stake uint64) ([]sdk.Msg, error) {
	create, err := k.Creation(moniker, stake)
	if err != nil {
		return nil, err
	}
	return []sdk.Msg{create, &beaconpb.MsgSetVRFKey{Sender: k.Address(), PublicKey: k.VRF.Public().(ed25519.PublicKey)}},
		nil
}

// Add is the message with which the operator adds uzen to the stake of its validator.
func (k Keys) Add(stake uint64) sdk.Msg {
	return &stakingtypes.MsgDelegate{DelegatorAddress: k.Address(), ValidatorAddress: k.validator(),
		Amount: adapter.Coins(stake)[0]}
}

// Remove is the message with which the operator takes uzen from the stake of its validator. They come back after the
// time for which the chain can still slash them.
func (k Keys) Remove(stake uint64) sdk.Msg {
	return &stakingtypes.MsgUndelegate{DelegatorAddress: k.Address(), ValidatorAddress: k.validator(),
		Amount: adapter.Coins(stake)[0]}
}

// Unjail is the message with which the operator ends the jailing of a validator that was offline for too long.
func (k Keys) Unjail() sdk.Msg { return &slashingtypes.MsgUnjail{ValidatorAddr: k.validator()} }
