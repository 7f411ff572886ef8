// Package words is the secret that all keys of a party or a validator come from, the words that represent it, and the
// key that wallets derive from these words. Addresses and signatures are those of package account, which is apart
// because the derivation of the SDK imports its stores.
package words

import (
	"github.com/cosmos/cosmos-sdk/crypto/hd"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	"github.com/cosmos/go-bip39"
)

// Path is the derivation path at which Cosmos wallets find the account of a phrase: coin 118, first account (BIP-44).
const Path = "m/44'/118'/0'/0/0"

// worded is the last byte of a stored secret whose account is derived from its words. In the old format, a secret is 32
// bytes without this byte: its account is derived from a digest, and wallets find another account under its words.
const worded = 2

// Secret is the secret that all keys of a party or a validator are derived from. 24 words of BIP-39 represent it.
type Secret struct {
	Bytes  [32]byte
	Digest bool // the account key is a digest of the bytes, not derived from the words
}

// ReadSecret decodes the bytes that Kept returns; false if they are no secret.
func ReadSecret(kept []byte) (s Secret, ok bool) {
	s.Digest = len(kept) == len(s.Bytes)
	copy(s.Bytes[:], kept)
	return s, s.Digest || len(kept) == len(s.Bytes)+1 && kept[len(s.Bytes)] == worded
}

// Kept encodes the secret for a file.
func (s Secret) Kept() []byte {
	if s.Digest {
		return s.Bytes[:]
	}
	return append(s.Bytes[:], worded)
}

// Words returns the phrase, in English.
func (s Secret) Words() string {
	phrase, err := bip39.NewMnemonic(s.Bytes[:])
	if err != nil {
		panic(err) // the length is right
	}
	return phrase
}

// Account returns the key that wallets derive from the words without a passphrase.
func (s Secret) Account() *secp256k1.PrivKey {
	key, err := hd.Secp256k1.Derive()(s.Words(), "", Path)
	if err != nil {
		panic(err) // the words and the path are valid
	}
	return &secp256k1.PrivKey{Key: key}
}
