package payout

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math/big"
	"strings"
	"testing"
)

func keyed(c byte) (ed25519.PrivateKey, Key) {
	secret := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{c}, 32))
	return secret, Key(secret.Public().(ed25519.PublicKey))
}

// Keys are written in base 58 in one way. A key of small order, which signs everything, is none.
func TestKeysAreWrittenInBase58(t *testing.T) {
	// The program of the system, and a token program, as Solana writes them.
	zero := Key{}
	if text := zero.String(); text != strings.Repeat("1", 32) {
		t.Errorf("the key of zeros is %s", text)
	}
	known := Key{6, 221, 246, 225, 215, 101, 161, 147, 217, 203, 225, 70, 206, 235, 121, 172, 28, 180, 133, 237, 95, 91,
		55, 145, 58, 140, 245, 133, 126, 255, 0, 169}
	if text := known.String(); text != "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA" {
		t.Errorf("a known key is %s", text)
	}
	for c := range byte(20) {
		_, k := keyed(c)
		if got, err := ParseKey(k.String()); err != nil || got != k {
			t.Errorf("%s is read as %s: %v", k, got, err)
		}
	}
	_, k := keyed(1)
	for _, text := range []string{"", "1" + k.String(), k.String()[:20], strings.Repeat("z", 44),
		strings.Replace(k.String(), k.String()[3:4], "0", 1), zero.String(), Key{1}.String()} {
		if got, err := ParseKey(text); !errors.Is(err, ErrAddress) {
			t.Errorf("%q is read as %s: %v", text, got, err)
		}
	}
}

// The owner of a key names it, as that of an address does, and each is paid on chains of its kind alone.
func TestOwnersNameKeys(t *testing.T) {
	secret, k := keyed(1)
	other, _ := keyed(2)
	text := []byte(Text("town", "account", k))
	p, err := NewPayee("town", "account", k[:], ed25519.Sign(secret, text))
	if err != nil || p.String() != k.String() || p.Address != k.Address() || !bytes.Equal(p.Bytes(), k[:]) {
		t.Fatalf("%+v, %v", p, err)
	}
	for name, s := range map[string][]byte{"none": nil, "of another": ed25519.Sign(other, text),
		"of another text": ed25519.Sign(secret, text[1:]), "one byte more": append(ed25519.Sign(secret, text), 0)} {
		if _, err := NewPayee("town", "account", k[:], s); !errors.Is(err, ErrSignature) {
			t.Errorf("a signature %s: %v", name, err)
		}
	}
	for _, a := range [][]byte{nil, k[:31], make([]byte, 20), make([]byte, 32)} {
		if _, err := NewPayee("town", "account", a, nil); !errors.Is(err, ErrAddress) {
			t.Errorf("%x: %v", a, err)
		}
	}
	keys, evm := Bridge{EVM: FirstKeyed}, Bridge{EVM: 1}
	wallet := Payee{Address: Address{1}}
	if keys.Pays(p) != nil || evm.Pays(wallet) != nil || !errors.Is(keys.Pays(wallet), ErrAddress) ||
		!errors.Is(evm.Pays(p), ErrAddress) {
		t.Error("an address is paid on a chain of the other kind")
	}
	claim := Proof{Account: k.Address(), Token: Address{2}, Total: big.NewInt(5).Bytes()}
	if _, _, err := Claiming("town", keys, 1, claim, other); !errors.Is(err, ErrAddress) {
		t.Errorf("the claim of another: %v", err)
	}
	if _, _, err := Claiming("town", evm, 1, claim, secret); !errors.Is(err, ErrAddress) {
		t.Errorf("a claim on another kind of chain: %v", err)
	}
	for _, bad := range []Proof{{Account: k.Address(), Total: bytes.Repeat([]byte{1}, 33)}, // of a node that lies
		{Account: k.Address(), Total: []byte{1}, Path: make([]Digest, maxPath+1)}} {
		if _, _, err := Claiming("town", keys, 1, bad, secret); !errors.Is(err, ErrClaim) {
			t.Errorf("a claim of %d bytes with a path of %d: %v", len(bad.Total), len(bad.Path), err)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	_, k := keyed(1)
	f.Add(k.String())
	f.Add(strings.Repeat("1", 32))
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := ParseKey(text); err == nil && k.String() != text {
			t.Errorf("%q is read as %s", text, k)
		}
	})
}
