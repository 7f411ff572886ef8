// Package identity holds the keys of a validator and of its operator, the secret in the validator's folder from which
// they are derived, and the messages that the operator signs. It runs no validator; that is package chain.
package identity

import (
	"github.com/cometbft/cometbft/crypto"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cometbft/cometbft/p2p"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/account/words"
)

// Keys are all keys of one validator, derived from one secret seed.
type Keys struct {
	Consensus crypto.PrivKey     // signs votes
	Node      crypto.PrivKey     // identity of the process among the processes of validators
	VRF       ed25519.PrivateKey // signs its part of the beacon
	Operator  *secp256k1.PrivKey // key of the account that created the validator
}

// NewKeys derives the keys from a seed. Each key comes from its own digest, so that no key reveals another.
func NewKeys(seed [32]byte) Keys {
	derive := func(purpose string) []byte {
		d := canon.Sum("starling/validator/1/"+purpose, seed[:])
		return d[:]
	}
	return Keys{
		Consensus: cmted25519.GenPrivKeyFromSecret(derive("consensus")),
		Node:      cmted25519.GenPrivKeyFromSecret(derive("node")),
		VRF:       ed25519.NewKeyFromSeed(derive("vrf")),
		Operator:  &secp256k1.PrivKey{Key: derive("operator")},
	}
}

// KeysOf derives the keys from a stored secret. They are those of NewKeys, except that the operator is the account that
// wallets derive from the words of the secret, unless s.Digest is set.
func KeysOf(s words.Secret) Keys {
	keys := NewKeys(s.Bytes)
	if !s.Digest {
		keys.Operator = s.Account()
	}
	return keys
}

// Address is the account address of the operator.
func (k Keys) Address() string { return sdk.AccAddress(k.Operator.PubKey().Address()).String() }

// NodeID is the name of the process in the Peers of another validator.
func (k Keys) NodeID() string { return string(p2p.PubKeyToID(k.Node.PubKey())) }
