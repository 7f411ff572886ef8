package wire

import (
	"github.com/cosmos/cosmos-sdk/crypto/hd"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	"github.com/cosmos/go-bip39"
)

// Path is where wallets of the ecosystem find the account of a phrase: coin 118, its first account (BIP-44).
const Path = "m/44'/118'/0'/0/0"

// worded is the last byte of a kept secret whose account is that of its words. A secret of 32 bytes alone is older: its
// account is a digest of it, and wallets find another account under its words.
const worded = 2

// Secret is what all keys of a party or of a validator come from. 24 words of BIP-39 write it down.
type Secret struct {
	Bytes  [32]byte
	Digest bool // the key of the account is a digest of the bytes, not that of the words
}

// ReadSecret reads what Kept writes: false if it is none.
func ReadSecret(kept []byte) (s Secret, ok bool) {
	s.Digest = len(kept) == len(s.Bytes)
	copy(s.Bytes[:], kept)
	return s, s.Digest || len(kept) == len(s.Bytes)+1 && kept[len(s.Bytes)] == worded
}

// Kept is how a file keeps the secret.
func (s Secret) Kept() []byte {
	if s.Digest {
		return s.Bytes[:]
	}
	return append(s.Bytes[:], worded)
}

// Words are the phrase, in English.
func (s Secret) Words() string {
	phrase, err := bip39.NewMnemonic(s.Bytes[:])
	if err != nil {
		panic(err) // the length is right
	}
	return phrase
}

// Account is the key that wallets derive from the words, without a passphrase of their own.
func (s Secret) Account() *secp256k1.PrivKey {
	key, err := hd.Secp256k1.Derive()(s.Words(), "", Path)
	if err != nil {
		panic(err) // the words are right, and so is the path
	}
	return &secp256k1.PrivKey{Key: key}
}
