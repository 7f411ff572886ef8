// Package opening states that keys of single leaves follow from one key of a file, which a digest names, and verifies
// proofs of it without that key: Groth16 on BN254 (Groth 2016). A party with the key of a leaf decrypts the leaf, and
// learns nothing of the others. It is the sampled part of a verifiable encryption under a committed key (Tas et al.
// 2024, eprint 2024/418), in which the sample is opened and not hidden.
//
// The package encrypts nothing, draws no leaves, and makes neither proofs nor keys of proofs: protocol/sale,
// proof/circuit and proof/ceremony do.
package opening

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr/poseidon2"

	"github.com/starling-network/starling/canon"
)

// Errors of openings.
var (
	ErrKey     = errors.New("opening: not a verifying key")
	ErrOpening = errors.New("opening: not an opening of leaves")
	ErrInvalid = errors.New("opening: the proof does not hold")
	ErrLeaves  = errors.New("opening: not a number of leaves that can be proven")
)

// KeyBytes is the size of a key of a file and of a leaf: an element of the scalar field of BN254, big endian.
const KeyBytes = fr.Bytes

// MaxLeaves is the most leaves of a proof.
const MaxLeaves = 1024

// CheckLeaves refuses a number of leaves that no proof has.
func CheckLeaves(n int) error {
	if n < 1 || n > MaxLeaves {
		return fmt.Errorf("%w: %d, wanted 1 to %d", ErrLeaves, n, MaxLeaves)
	}
	return nil
}

// Key is the key of a file.
type Key struct{ x fr.Element }

// NewKey draws a key.
func NewKey() (k Key, err error) {
	_, err = k.x.SetRandom()
	return k, err
}

// ParseKey reads the bytes of a key.
func ParseKey(b []byte) (k Key, err error) {
	return k, k.x.SetBytesCanonical(b)
}

// Bytes of the key, KeyBytes.
func (k Key) Bytes() []byte { return k.x.Marshal() }

// Digest names the key.
func (k Key) Digest() canon.Digest { return k.follow(Domain()) }

// Leaf is the key of leaf i.
func (k Key) Leaf(i uint64) [KeyBytes]byte { return k.follow(fr.NewElement(i)) }

var permutation = sync.OnceValue(poseidon2.NewDefaultPermutation)

// follow is the compression of the key and an input: the second element of Poseidon2 of width 2 (Grassi, Khovratovich
// and Schofnegger 2023, eprint 2023/323) over both, plus the input. A party without the key cannot tell its values from
// random ones.
func (k Key) follow(input fr.Element) [KeyBytes]byte {
	x := [2]fr.Element{k.x, input}
	if err := permutation().Permutation(x[:]); err != nil {
		panic(err) // it is for two elements
	}
	return x[1].Add(&x[1], &input).Bytes()
}

// Domain is the input that gives the digest of a key: no number of a leaf.
func Domain() (x fr.Element) {
	d := sha256.Sum256([]byte("starling/sale/key/2"))
	binary.BigEndian.PutUint64(d[:], 1) // below the order of the field, and above 2^64
	x.SetBytes(d[:])
	return x
}

// Opening are the keys of leaves with the proof that they follow from the key of the file.
type Opening struct {
	Keys   []byte `cbor:"1,keyasint"` // KeyBytes each, in the order of the leaves
	Points []byte `cbor:"2,keyasint"` // A, B and C of Groth16, compressed
	// digest of the verifying key: by another, the opening does not hold
	Verifying canon.Digest `cbor:"3,keyasint"`
}

const (
	magic = "starling opening 1\n"
	// MaxOpening is the most bytes of an opening.
	MaxOpening = MaxLeaves*KeyBytes + 512
)

// Encode returns the bytes of an opening.
func (o Opening) Encode() []byte { return append([]byte(magic), canon.MustMarshal(o)...) }

// Decode reads an opening. Its proof may not hold.
func Decode(data []byte) (o Opening, err error) {
	if err = decode(data, magic, MaxOpening, &o); err == nil {
		if err = CheckLeaves(len(o.Keys) / KeyBytes); err == nil && len(o.Keys)%KeyBytes > 0 {
			err = fmt.Errorf("%d bytes of keys", len(o.Keys))
		}
	}
	if err != nil {
		return o, fmt.Errorf("%w: %w", ErrOpening, err)
	}
	return o, nil
}

// Key is the key of the leaf at a place of the list.
func (o Opening) Key(at int) []byte { return o.Keys[at*KeyBytes : (at+1)*KeyBytes] }

func decode(data []byte, magic string, most int, into any) error {
	if len(data) > most {
		return fmt.Errorf("%d bytes, at most %d", len(data), most)
	}
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return fmt.Errorf("it does not begin with %q", magic)
	}
	return canon.Unmarshal(data[len(magic):], into)
}
