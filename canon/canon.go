// Package canon is the one canonical form of everything that is hashed, signed or sent: deterministic CBOR
// (RFC 8949, section 4.2), SHA-256 digests with a domain, and Merkle trees of fan-out 16.
//
// Two values that are equal have the same bytes on every machine, and Unmarshal accepts only those bytes, so a
// digest names a value and not one of its spellings. It is not a wire protocol: framing and size limits of a
// stream belong to network/.
package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// ErrNotCanonical is returned for bytes that decode, but are not the canonical encoding of the decoded value.
var ErrNotCanonical = errors.New("canon: not the canonical encoding")

// Limits of one decoded value. They bound what a stranger's bytes may make us allocate.
const (
	MaxElements = 1 << 20 // elements of one array, pairs of one map
	MaxDepth    = 16      // nesting
)

var (
	encMode = must(cbor.CoreDetEncOptions().UserBufferEncMode())
	decMode = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxArrayElements:  MaxElements,
		MaxMapPairs:       MaxElements,
		MaxNestedLevels:   MaxDepth,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Marshal returns the canonical bytes of v. Structs should use `cbor:"N,keyasint"` tags, whose numbers are the
// format: a number is never reused for something else.
func Marshal(v any) ([]byte, error) { return encMode.Marshal(v) }

// MustMarshal is Marshal for values of our own types, whose encoding cannot fail.
func MustMarshal(v any) []byte { return must(encMode.Marshal(v)) }

// MustMarshalSized is MustMarshal into a buffer of size bytes, which grows if there are more: a caller that knows the
// size of a large value saves copies of it.
func MustMarshalSized(v any, size int) []byte { return must(marshalSized(v, size)) }

func marshalSized(v any, size int) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, size))
	err := encMode.MarshalToBuffer(v, b)
	return b.Bytes(), err
}

// Unmarshal decodes canonical bytes into v, a pointer. Unknown fields, duplicate keys, values beyond the limits
// above and bytes that Marshal would not have produced are errors.
func Unmarshal(data []byte, v any) error {
	if err := decMode.Unmarshal(data, v); err != nil {
		return fmt.Errorf("canon: %w", err)
	}
	again, err := marshalSized(v, len(data))
	if err != nil {
		return fmt.Errorf("canon: %w", err)
	}
	if !bytes.Equal(data, again) {
		return ErrNotCanonical
	}
	return nil
}

// Digest is a SHA-256 digest. Its text form is 64 hexadecimal digits.
type Digest [sha256.Size]byte

// Sum digests the parts under a domain, so that a digest made for one purpose means nothing for another. Parts are
// length-prefixed: ("ab","c") and ("a","bc") differ.
func Sum(domain string, parts ...[]byte) (d Digest) {
	h := sha256.New() // on the stack: only methods of it are called here, and no other function gets it
	var head [8]byte
	_, _ = h.Write(appendLength(head[:0], len(domain))) // a hash never fails to write
	_, _ = h.Write([]byte(domain))
	for _, p := range parts {
		_, _ = h.Write(appendLength(head[:0], len(p)))
		_, _ = h.Write(p)
	}
	h.Sum(d[:0])
	return d
}

func appendLength(b []byte, n int) []byte { return binary.LittleEndian.AppendUint64(b, uint64(n)) }

// Hash digests the canonical bytes of v under a domain.
func Hash(domain string, v any) Digest { return Sum(domain, MustMarshal(v)) }

// IsZero reports whether d is the zero digest, which stands for "none".
func (d Digest) IsZero() bool { return d == Digest{} }

// String returns the 64 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Short returns the first 12 hexadecimal digits, for people.
func (d Digest) Short() string { return d.String()[:12] }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != 2*len(d) {
		return fmt.Errorf("canon: a digest has %d hexadecimal digits, not %d", 2*len(d), len(text))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// MarshalCBOR implements cbor.Marshaler: a byte string.
func (d Digest) MarshalCBOR() ([]byte, error) { return encMode.Marshal(d[:]) }

// UnmarshalCBOR implements cbor.Unmarshaler.
func (d *Digest) UnmarshalCBOR(data []byte) error {
	var b []byte
	if err := decMode.Unmarshal(data, &b); err != nil {
		return err
	}
	if len(b) != len(d) {
		return fmt.Errorf("canon: a digest has %d bytes, not %d", len(d), len(b))
	}
	copy(d[:], b)
	return nil
}
