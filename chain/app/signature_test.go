package app

import (
	"encoding/binary"
	"testing"

	"github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	"github.com/google/go-cmp/cmp"

	"github.com/starling-network/starling/canon"
)

// TestRemembersWhatItVerified asks a key that remembers and one that does not the same things, each twice.
func TestRemembersWhatItVerified(t *testing.T) {
	seen := newSignatures()
	secret, other := secp256k1.GenPrivKeyFromSecret([]byte("a")), secp256k1.GenPrivKeyFromSecret([]byte("b"))
	text := []byte("what is signed")
	signature, err := secret.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	bent := append([]byte(nil), signature...)
	bent[7]++
	for range 2 {
		for _, c := range []struct {
			name            string
			secret          *secp256k1.PrivKey
			text, signature []byte
			right           bool
		}{
			{"right", secret, text, signature, true},
			{"another key", other, text, signature, false},
			{"another text", secret, text[1:], signature, false},
			{"bent", secret, text, bent, false},
			{"short", secret, text, signature[1:], false},
			{"none", secret, text, nil, false},
			{"shifted", secret, append(text, signature[0]), signature[1:], false},
		} {
			plain := c.secret.PubKey().(*secp256k1.PubKey)
			if got := (key{plain, seen}).VerifySignature(c.text, c.signature); got != c.right || got != plain.VerifySignature(c.text, c.signature) {
				t.Errorf("%s: verified %v, want %v", c.name, got, c.right)
			}
		}
	}
	if n := len(seen.now); n != 1 {
		t.Errorf("%d signatures are remembered, and one was right", n)
	}
}

// TestKeyOnTheWire compares a key that remembers with the one that it holds as a part of what is signed.
func TestKeyOnTheWire(t *testing.T) {
	plain := secp256k1.GenPrivKeyFromSecret([]byte("a")).PubKey().(*secp256k1.PubKey)
	want, err := types.NewAnyWithValue(plain)
	if err != nil {
		t.Fatal(err)
	}
	got, err := types.NewAnyWithValue(key{plain, newSignatures()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{want.TypeUrl, want.Value}, []any{got.TypeUrl, got.Value}); diff != "" {
		t.Error(diff)
	}
}

func TestForgetsTheOldest(t *testing.T) {
	seen := newSignatures()
	name := func(i int) canon.Digest { return canon.Sum("test", binary.LittleEndian.AppendUint64(nil, uint64(i))) }
	for i := range 3 * generation {
		seen.remember(name(i))
		if len(seen.now)+len(seen.before) > 2*generation || !seen.known(name(i)) || !seen.known(name(max(0, i-generation+1))) {
			t.Fatalf("after %d: %d and %d are remembered", i, len(seen.now), len(seen.before))
		}
	}
	if seen.known(name(0)) {
		t.Error("the first is still remembered")
	}
}
