package payout

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// The examples of EIP-55, and addresses with another character.
func TestAddressesHaveChecksums(t *testing.T) {
	for _, text := range []string{"0x52908400098527886E0F7030069857D2E4169EE7",
		"0xde709f2102306220921060314715629080e2fb77",
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		"0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"} {
		a, err := ParseAddress(text)
		if err != nil || a.String() != text {
			t.Errorf("%s is read as %s (%v)", text, a, err)
		}
	}
	for _, text := range []string{"", "0x", "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe",
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAex"} {
		if a, err := ParseAddress(text); !errors.Is(err, ErrAddress) {
			t.Errorf("%q is read as %s (%v)", text, a, err)
		}
	}
}

// A signature of another library for Ethereum, and changes of it.
func TestTextsAreSignedByTheirOwner(t *testing.T) {
	// The key and the signature are of the pages of web3.js.
	key, _ := hex.DecodeString("4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318")
	w, err := NewWallet(key)
	if err != nil {
		t.Fatal(err)
	}
	if w.Address().String() != "0x2c7536E3605D9C16a7a3D7b1898e529396a65c23" {
		t.Errorf("the address is %s", w.Address())
	}
	s := w.SignText("Some data")
	want := "b91467e570a6466aa9e9876cbcd013baba02900b8979d43fe208a4a4f339f5fd" +
		"6007e74cd82e037b800186422fc2da167c747ef045e5d18a5f5d4300f8e1a0291c"
	if hex.EncodeToString(s) != want {
		t.Errorf("%x", s)
	}
	if err := CheckText("Some data", w.Address(), s); err != nil {
		t.Error(err)
	}
	for i := range s {
		bad := bytes.Clone(s)
		bad[i] ^= 4
		if CheckText("Some data", w.Address(), bad) == nil {
			t.Errorf("a signature with byte %d changed is right", i)
		}
	}
	if CheckText("Some datb", w.Address(), s) == nil || CheckText("Some data", Address{1}, s) == nil {
		t.Error("the signature is right for another text or address")
	}
}

// FuzzText gives texts, addresses and signatures that a stranger chose: only a signature of the owner is right.
func FuzzText(f *testing.F) {
	w, err := NewWallet(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", []byte{})
	f.Add(w.Address().String(), w.SignText("text"))
	right := w.SignText("text")
	f.Fuzz(func(t *testing.T, address string, signature []byte) {
		a, err := ParseAddress(address)
		if err == nil && !strings.EqualFold(a.String(), address) {
			t.Errorf("%q is %s", address, a)
		}
		if CheckText("text", w.Address(), signature) == nil && !bytes.Equal(signature[:32], right[:32]) {
			t.Logf("another signature of the owner: %x", signature)
		}
		if CheckKey(signature, []byte(address), signature) {
			t.Error("a key without a proof")
		}
		var d Digest
		if d.UnmarshalText([]byte(address)) == nil && d.String() != strings.ToLower(address) {
			t.Errorf("%q is %s", address, d)
		}
	})
}

func TestProofsLeadToTheRoot(t *testing.T) {
	for n := 1; n < 20; n++ {
		var list Claims
		for i := range n {
			list = append(list, Claim{Account: Address{byte(n - i)}, Token: Address{1}, Total: big.NewInt(int64(i + 1))})
		}
		list.Sort()
		tree := list.Tree()
		for i, c := range list {
			p := list.Proof(tree, i)
			if RootOf(c.Leaf(), p.Path) != tree.Root() {
				t.Errorf("claim %d of %d is not proven", i, n)
			}
			c.Total = big.NewInt(1 << 40)
			if RootOf(c.Leaf(), p.Path) == tree.Root() {
				t.Errorf("another total of claim %d of %d is proven", i, n)
			}
		}
	}
}

// A set signs with every choice of members that has two thirds of all power, and with no other.
func TestCertificatesOfAllChoices(t *testing.T) {
	s := Set{Number: 1, Total: 100}
	var secrets []Secret
	for i, p := range []uint64{30, 25, 20, 15} { // 10 are of a validator without a key
		secrets = append(secrets, NewSecret(fmt.Append(nil, i)))
		s.Members = append(s.Members, Member{Validator: []byte{byte(i)}, Key: secrets[i].Public(), Power: p})
	}
	digest, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	message := Keccak([]byte("message"))
	for choice := 1; choice < 16; choice++ {
		signatures := make([][]byte, 4)
		power := uint64(0)
		for i, m := range s.Members {
			if choice>>i&1 == 0 {
				continue
			}
			power += m.Power
			if signatures[i], err = secrets[i].Sign(message); err != nil {
				t.Fatal(err)
			}
		}
		c, err := s.Certify(signatures)
		if err != nil {
			t.Fatal(err)
		}
		if ok := c.Check(digest, message) == nil; ok != (power >= 67) {
			t.Errorf("%d of 100 sign: %v", power, ok)
		}
		if c.Check(digest, Keccak(nil)) == nil || c.Check(Digest{}, message) == nil {
			t.Error("it is right for another message or set")
		}
		if len(c.Absent) > 0 {
			c.Absent = slices.Concat(c.Absent, c.Absent[len(c.Absent)-1:])
			if c.Check(digest, message) == nil {
				t.Error("a member is absent twice")
			}
		}
	}
	// A key that cancels another has no proof.
	if CheckKey(s.Members[0].Key, []byte{0}, nil) {
		t.Error("a key without a proof")
	}
	p, err := secrets[0].Possess([]byte{0})
	if err != nil || !CheckKey(s.Members[0].Key, []byte{0}, p) || CheckKey(s.Members[0].Key, []byte{1}, p) ||
		CheckKey(s.Members[1].Key, []byte{0}, p) {
		t.Errorf("proofs of keys (%v)", err)
	}
}

func TestParamsKeepBridges(t *testing.T) {
	token := Address{5}
	b := Bridge{EVM: 1, Contract: Address{1}, Tokens: []Token{{Address: token}}}
	old := Params{EpochBlocks: 10, Bridges: []Bridge{b}}
	if err := (Params{}).Change(old); err != nil {
		t.Fatal(err)
	}
	changed := func(f func(*Bridge)) Params {
		c := b
		f(&c)
		return Params{EpochBlocks: 10, Bridges: []Bridge{c}}
	}
	for name, p := range map[string]Params{
		"no bridge":        {EpochBlocks: 10},
		"another contract": changed(func(b *Bridge) { b.Contract = Address{2} }),
		"no token":         changed(func(b *Bridge) { b.Tokens = nil }),
		"a token twice":    changed(func(b *Bridge) { b.Tokens = append(slices.Clone(b.Tokens), b.Tokens[0]) }),
		"ZEN as a token":   changed(func(b *Bridge) { b.Tokens = []Token{b.Tokens[0], {Address: b.Zen()}} }),
		"a chain twice":    {EpochBlocks: 10, Bridges: []Bridge{b, b}},
		"short epochs":     {EpochBlocks: 1, Bridges: []Bridge{b}},
	} {
		if err := old.Change(p); !errors.Is(err, ErrBridge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := old.Change(changed(func(b *Bridge) { b.Minimum = 7 })); err != nil {
		t.Error(err)
	}
	denom, err := b.Denom(token)
	if found, _, err2 := b.Find(denom); err != nil || err2 != nil || found != token {
		t.Errorf("%s is %s (%v, %v)", denom, found, err, err2)
	}
}
