package payout

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"slices"

	"filippo.io/edwards25519"
	"github.com/mr-tron/base58"
)

// FirstKeyed is the least identifier of a chain whose addresses are Ed25519 keys, as those of Solana are. That of an
// Ethereum-style chain is lower.
const FirstKeyed = 1 << 52

// Key is an address of such a chain: an Ed25519 public key, written in base 58.
type Key [32]byte

// String is the key in base 58.
func (k Key) String() string { return base58.Encode(k[:]) }

// ParseKey reads a key in base 58. It is no key of a point of small order, whose signatures anybody makes.
func ParseKey(text string) (k Key, err error) {
	bad := func(why string) (Key, error) { return Key{}, fmt.Errorf("%w: %.60q: %s", ErrAddress, text, why) }
	if len(text) < 32 || len(text) > 44 {
		return bad("a key in base 58 has 32 to 44 characters")
	}
	b, err := base58.Decode(text)
	if err != nil {
		return bad("base 58 has other characters")
	}
	if copy(k[:], b); len(b) != len(k) || k.String() != text {
		return bad("it has not 32 bytes")
	}
	return k, k.check()
}

// check reports a key that signs nothing, or that every signature is of.
func (k Key) check() error {
	if !ordinary(k) {
		return fmt.Errorf("%w: %s is no point of the curve, or one of small order", ErrAddress, k)
	}
	return nil
}

// Address stands for the key in the tree of claims, which is that of all chains: the last 20 bytes of a digest. No key
// of an Ethereum-style chain is known to have it.
func (k Key) Address() (a Address) {
	sum := Keccak([]byte("starling payout key 1"), k[:])
	copy(a[:], sum[12:])
	return a
}

// Verify returns why a signature of a message is not that of the key.
func (k Key) Verify(message, signature []byte) error {
	if err := k.check(); err != nil {
		return err
	}
	if len(signature) != ed25519.SignatureSize || !ed25519.Verify(k[:], message, signature) {
		return fmt.Errorf("%w: %s has not signed this", ErrSignature, k)
	}
	return nil
}

// Keyed reports whether the addresses of the chain of a bridge are keys.
func (b Bridge) Keyed() bool { return b.EVM >= FirstKeyed }

// Pays reports a payee whose address is none of the chain of the bridge.
func (b Bridge) Pays(p Payee) error {
	if keyed := len(p.Key) > 0; keyed != b.Keyed() {
		return fmt.Errorf("%w: of chain %d, whose addresses are keys: %t; %s is one: %t", ErrAddress, b.EVM, b.Keyed(),
			p, keyed)
	}
	return nil
}

// NewPayee is how an account of a network is paid out at an address, 20 bytes or a key of 32, whose owner has signed
// Text.
func NewPayee(chain, account string, address, signature []byte) (p Payee, err error) {
	switch len(address) {
	case len(p.Address):
		copy(p.Address[:], address)
		if p.Address.IsZero() {
			return p, fmt.Errorf("%w: %x", ErrAddress, address)
		}
		return p, CheckText(Text(chain, account, p.Address), p.Address, signature)
	case len(Key{}):
		k := Key(address)
		p.Key, p.Address = slices.Clone(address), k.Address()
		return p, k.Verify([]byte(Text(chain, account, k)), signature)
	}
	return p, fmt.Errorf("%w: %d bytes", ErrAddress, len(address))
}

// String is the address as its chain writes it.
func (p Payee) String() string {
	if len(p.Key) == len(Key{}) {
		return Key(p.Key).String()
	}
	return p.Address.String()
}

// Bytes are those of the address in messages.
func (p Payee) Bytes() []byte {
	if len(p.Key) > 0 {
		return p.Key
	}
	return p.Address[:]
}

// ordinary reports whether bytes are the one encoding of a point of the curve that is not of small order.
func ordinary(k Key) bool {
	p, err := new(edwards25519.Point).SetBytes(k[:])
	if err != nil || !bytes.Equal(p.Bytes(), k[:]) {
		return false
	}
	return new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) == 0
}
