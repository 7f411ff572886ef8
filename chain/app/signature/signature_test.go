package signature

import (
	"testing"

	"github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"github.com/google/go-cmp/cmp"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/wire"
)

// TestRemembersWhatItVerified asks a key with a memory and a key without one the same questions, each twice.
func TestRemembersWhatItVerified(t *testing.T) {
	seen := new(Memory)
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
			if got := (key{plain, seen}).VerifySignature(c.text, c.signature); got != c.right ||
				got != plain.VerifySignature(c.text, c.signature) {
				t.Errorf("%s: verified %v, want %v", c.name, got, c.right)
			}
		}
	}
	if n := len(seen.right.now); n != 1 {
		t.Errorf("%d signatures are remembered, and one was right", n)
	}
}

// TestKeyOnTheWire compares a key with a memory and the plain key in the bytes that are signed.
func TestKeyOnTheWire(t *testing.T) {
	plain := secp256k1.GenPrivKeyFromSecret([]byte("a")).PubKey().(*secp256k1.PubKey)
	want, err := types.NewAnyWithValue(plain)
	if err != nil {
		t.Fatal(err)
	}
	got, err := types.NewAnyWithValue(key{plain, new(Memory)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{want.TypeUrl, want.Value}, []any{got.TypeUrl, got.Value}); diff != "" {
		t.Error(diff)
	}
}

func TestForgetsTheOldest(t *testing.T) {
	var seen recent[int, int]
	known := func(k int) bool {
		v, ok := seen.get(k)
		return ok && v == -k
	}
	for i := range 3 * generation {
		seen.put(i, -i)
		if len(seen.now)+len(seen.before) > 2*generation || !known(i) || !known(max(0, i-generation+1)) {
			t.Fatalf("after %d: %d and %d are remembered", i, len(seen.now), len(seen.before))
		}
	}
	if known(0) {
		t.Error("the first is still remembered")
	}
}

// signed returns a transaction of one signer, the text that is signed, and the signature.
func signed(t testing.TB, secret *secp256k1.PrivKey, chain string,
	number uint64) (transaction, text, signature []byte) {
	t.Helper()
	e, err := wire.NewEncoding()
	if err != nil {
		t.Fatal(err)
	}
	address := sdk.AccAddress(secret.PubKey().Address())
	b := e.Tx.NewTxBuilder()
	if err := b.SetMsgs(&banktypes.MsgSend{FromAddress: address.String(), ToAddress: address.String(),
		Amount: sdk.NewCoins(sdk.NewInt64Coin("uzen", 1))}); err != nil {
		t.Fatal(err)
	}
	sign := func(signature []byte) {
		t.Helper()
		if err := b.SetSignatures(signing.SignatureV2{
			PubKey: secret.PubKey(), Sequence: 3,
			Data: &signing.SingleSignatureData{SignMode: signing.SignMode_SIGN_MODE_DIRECT, Signature: signature},
		}); err != nil {
			t.Fatal(err)
		}
	}
	sign(nil)
	text, err = authsigning.GetSignBytesAdapter(t.Context(), e.Tx.SignModeHandler(), signing.SignMode_SIGN_MODE_DIRECT,
		authsigning.SignerData{Address: address.String(), ChainID: chain, AccountNumber: number, Sequence: 3,
			PubKey: secret.PubKey()}, b.GetTx())
	if err != nil {
		t.Fatal(err)
	}
	if signature, err = secret.Sign(text); err != nil {
		t.Fatal(err)
	}
	sign(signature)
	if transaction, err = e.Tx.TxEncoder()(b.GetTx()); err != nil {
		t.Fatal(err)
	}
	return transaction, text, signature
}

// Early verifies the same text that the SDK verifies in CheckTx, and does not remember wrong signatures.
func TestVerifiesEarly(t *testing.T) {
	secret := secp256k1.GenPrivKeyFromSecret([]byte("a"))
	k := secret.PubKey().(*secp256k1.PubKey)
	transaction, text, signature := signed(t, secret, "chain", 7)
	for _, c := range []struct {
		name, chain string
		number      uint64
		known       bool // whether the number of the account is remembered
		right       int
	}{
		{"right", "chain", 7, true, 1},
		{"an account that is not known", "chain", 7, false, 0},
		{"another account", "chain", 8, true, 0},
		{"another chain", "chains", 7, true, 0},
	} {
		var s Memory
		if c.known {
			s.numbers.put(string(k.Key), c.number)
		}
		s.Early(c.chain, transaction)
		if _, known := s.right.get(canon.Sum("starling/signature/1", k.Key, text, signature)); len(s.right.now) != c.right ||
			known != (c.right == 1) {
			t.Errorf("%s: %d are remembered, this one: %v", c.name, len(s.right.now), known)
		}
	}
}

func FuzzEarly(f *testing.F) {
	secret := secp256k1.GenPrivKeyFromSecret([]byte("a"))
	transaction, _, _ := signed(f, secret, "chain", 7)
	f.Add(transaction)
	f.Add(transaction[:len(transaction)-1])
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Memory
		s.numbers.put(string(secret.PubKey().Bytes()), 7)
		s.Early("chain", b)
		if n := len(s.right.now); n > 1 {
			t.Errorf("%d signatures are remembered", n)
		}
	})
}
