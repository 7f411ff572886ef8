// Package payout has the rules by which coins of a network are paid out on other chains: what each account there may
// claim, the tree over all claims of an epoch, and the signatures of validators for its root and for the set of
// validators that signs next. Contracts check the same with Keccak-256 and BLS12-381. The package sends nothing.
package payout

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/sha3"
)

// Errors of the rules.
var (
	ErrAddress   = errors.New("payout: not an address of the other chain")
	ErrSignature = errors.New("payout: wrong signature")
	ErrBridge    = errors.New("payout: invalid bridge")
	ErrClaim     = errors.New("payout: invalid claim")
	ErrSet       = errors.New("payout: invalid set of validators")
)

// Address is an account or a contract of an Ethereum-style chain.
type Address [20]byte

// Digest is a Keccak-256.
type Digest [32]byte

// Keccak is the Keccak-256 of the parts, as the EVM computes it.
func Keccak(parts ...[]byte) (d Digest) {
	h := sha3.NewLegacyKeccak256()
	for _, p := range parts {
		h.Write(p)
	}
	h.Sum(d[:0])
	return d
}

// String is 0x and hexadecimal digits.
func (d Digest) String() string { return "0x" + hex.EncodeToString(d[:]) }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) error {
	digits, ok := strings.CutPrefix(string(text), "0x")
	if !ok || len(digits) != 2*len(d) {
		return fmt.Errorf("payout: %q is no digest", text)
	}
	_, err := hex.Decode(d[:], []byte(digits))
	return err
}

// String writes an address with its checksum (EIP-55).
func (a Address) String() string {
	text := []byte(hex.EncodeToString(a[:]))
	sum := Keccak(text)
	for i, c := range text {
		if c >= 'a' && sum[i/2]>>(4*(1-i%2))&8 != 0 {
			text[i] = c - 'a' + 'A'
		}
	}
	return "0x" + string(text)
}

// MarshalText implements encoding.TextMarshaler.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Address) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAddress(string(text))
	return err
}

// ParseAddress reads an address: 0x and 40 hexadecimal digits. If it has digits in both cases, its checksum is checked.
func ParseAddress(text string) (a Address, err error) {
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || len(digits) != 2*len(a) {
		return a, fmt.Errorf("%w: %q: it is 0x and 40 hexadecimal digits", ErrAddress, text)
	}
	if _, err := hex.Decode(a[:], []byte(digits)); err != nil {
		return a, fmt.Errorf("%w: %q: %w", ErrAddress, text, err)
	}
	if digits != strings.ToLower(digits) && digits != strings.ToUpper(digits) && a.String() != text {
		return a, fmt.Errorf("%w: %q: its checksum is wrong: a character of it is another", ErrAddress, text)
	}
	return a, nil
}

// IsZero reports whether all bytes are zero: contracts refuse payments to this address.
func (a Address) IsZero() bool { return a == Address{} }
