// Package prg expands a secret key into a stream of bits that cannot be told from random ones without the key: AES-256
// in counter mode. Masks and noise of private updates are drawn from it. It derives keys, too. It makes no key: keys
// come from the caller.
package prg

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Key is the secret of a stream. A key has one use.
type Key [32]byte

// Derive makes the key of a purpose from a secret of high entropy, by HKDF with SHA-256 (RFC 5869).
func Derive(secret []byte, purpose string, context ...[]byte) Key {
	salt := sha256.New()
	for _, c := range context {
		fmt.Fprintf(salt, "%d:", len(c))
		salt.Write(c)
	}
	b, err := hkdf.Key(sha256.New, secret, salt.Sum(nil), purpose, len(Key{}))
	if err != nil {
		panic("prg: " + err.Error()) // the length is 32
	}
	return Key(b)
}

// block is how many bytes of the stream are made at a time.
const block = 1 << 14

// Stream reads the bits of a key in their order.
type Stream struct {
	cipher cipher.Stream
	buffer []byte
	at     int // bytes of buffer that are read
}

// New is the stream of a key from its start.
func New(key Key) *Stream {
	c, err := aes.NewCipher(key[:])
	if err != nil {
		panic("prg: " + err.Error()) // the key has 32 bytes
	}
	return &Stream{cipher: cipher.NewCTR(c, make([]byte, aes.BlockSize)), buffer: make([]byte, block), at: block}
}

// fill makes the next bytes of the stream.
func (s *Stream) fill() {
	clear(s.buffer)
	s.cipher.XORKeyStream(s.buffer, s.buffer)
	s.at = 0
}

// Uint64 is the next 64 bits.
func (s *Stream) Uint64() uint64 {
	if s.at == block {
		s.fill()
	}
	s.at += 8
	return binary.LittleEndian.Uint64(s.buffer[s.at-8:])
}

// Below is uniform in 0..n-1, for n above 0, by rejection.
func (s *Stream) Below(n uint64) uint64 {
	least := -n % n // of 2^64 values, these are left over
	for {
		if x := s.Uint64(); x >= least {
			return x % n
		}
	}
}

// Add adds the stream of a key to values modulo 2^32, an element of 32 bits for each; Subtract subtracts it.
func Add(values []uint32, key Key) {
	each(values, key, func(into []uint32, b []byte) {
		for i := range into {
			into[i] += binary.LittleEndian.Uint32(b[4*i:])
		}
	})
}

// Subtract subtracts what Add adds.
func Subtract(values []uint32, key Key) {
	each(values, key, func(into []uint32, b []byte) {
		for i := range into {
			into[i] -= binary.LittleEndian.Uint32(b[4*i:])
		}
	})
}

func each(values []uint32, key Key, apply func(into []uint32, b []byte)) {
	s := New(key)
	for len(values) > 0 {
		s.fill()
		n := min(len(values), block/4)
		apply(values[:n], s.buffer)
		values = values[n:]
	}
}
