// Package wallet holds the keys of accounts, and checks addresses and signatures. It knows no chain.
package wallet

import (
	"encoding/hex"

	"github.com/cometbft/cometbft/crypto/secp256k1"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/account"
)

// Signer holds the key of an account.
type Signer interface {
	Address() string
	PublicKey() []byte                   // secp256k1, compressed, 33 bytes
	Sign(message []byte) ([]byte, error) // R || S (64 bytes) over the SHA-256 of the message
}

// Key is a signer that holds its key in memory.
type Key struct {
	private secp256k1.PrivKey
	address string
}

// KeyFromSeed derives a key from 32 secret bytes.
func KeyFromSeed(seed [32]byte) *Key {
	d := canon.Sum("starling/account/1", seed[:])
	return NewKey(d[:])
}

// NewKey is the signer of a secret key of secp256k1 (32 bytes) that exists, such as that of a validator's operator.
func NewKey(secret []byte) *Key {
	k := secp256k1.PrivKey(secret)
	return &Key{private: k, address: account.Address(k.PubKey().Address())}
}

// Address of the account: starling1...
func (k *Key) Address() string { return k.address }

// Hex is the secret key in the form that wallets import: 64 hexadecimal digits.
func (k *Key) Hex() string { return hex.EncodeToString(k.private) }

// PublicKey implements Signer.
func (k *Key) PublicKey() []byte { return k.private.PubKey().Bytes() }

// Sign implements Signer.
func (k *Key) Sign(message []byte) ([]byte, error) { return k.private.Sign(message) }

// ErrSignature is returned for a signature that is not what it should be.
var ErrSignature = account.ErrSignature

// Verify checks that the account with an address signed a digest, as the votes of a lineage are signed. It needs no
// network.
func Verify(address string, publicKey []byte, digest canon.Digest, signature []byte) error {
	return account.Verify(address, publicKey, digest, signature)
}

// CheckAddress reports what is wrong with the address of an account, if something is.
func CheckAddress(address string) error { return account.Check(address) }

// ModuleAddress is the account that holds the coins of a module of the chain, such as "market" with all budgets.
func ModuleAddress(module string) string { return account.Module(module) }
