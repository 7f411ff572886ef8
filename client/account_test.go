package client_test

import (
	"bytes"
	"math/big"
	"testing"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	"pgregory.net/rapid"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/account"
	"github.com/starling-network/starling/client/wallet"
)

// groupOrder is the order of the group of secp256k1 (SEC 2, section 2.4.1).
var groupOrder, _ = new(big.Int).SetString("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16)

// A party's key has the address and signs the bytes that the key of the SDK has and signs, with which the chain reads
// them, and package account accepts the signatures that the SDK accepts: not those with the other root (n-s).
func TestAccountsAreThoseOfTheSDK(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "secret")
		sdk, key := &secp256k1.PrivKey{Key: secret}, wallet.NewKey(secret)
		if own := account.Address(sdk.PubKey().Address()); key.Address() != own {
			t.Fatalf("address %s, of the SDK %s", key.Address(), own)
		}
		if !bytes.Equal(key.PublicKey(), sdk.PubKey().Bytes()) {
			t.Fatalf("public key %x, of the SDK %x", key.PublicKey(), sdk.PubKey().Bytes())
		}
		digest := canon.Sum("test", rapid.SliceOf(rapid.Byte()).Draw(t, "message"))
		signature, err := key.Sign(digest[:])
		if err != nil {
			t.Fatal(err)
		}
		if own, err := sdk.Sign(digest[:]); err != nil || !bytes.Equal(signature, own) {
			t.Fatalf("signature %x, of the SDK %x (%v)", signature, own, err)
		}
		other := bytes.Clone(signature)
		new(big.Int).Sub(groupOrder, new(big.Int).SetBytes(signature[32:])).FillBytes(other[32:])
		changed := bytes.Clone(signature)
		changed[rapid.IntRange(0, 63).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		any64 := rapid.SliceOfN(rapid.Byte(), 0, 66).Draw(t, "any")
		zeros, ones := make([]byte, 64), bytes.Repeat([]byte{0xff}, 64)
		for i, s := range [][]byte{signature, other, changed, any64, zeros, ones} {
			err := account.Verify(key.Address(), key.PublicKey(), digest, s)
			if of := sdk.PubKey().VerifySignature(digest[:], s); of != (err == nil) || (err == nil) != (i == 0) {
				t.Fatalf("signature %d, %x: %v, of the SDK %v", i, s, err, of)
			}
		}
	})
}
