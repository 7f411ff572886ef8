// Package homomorphic encrypts vectors of integers so that ciphertexts are added unopened, and the sum of the keys
// opens the sum of the vectors, to the bit. It is the symmetric form of the scheme of Brakerski, Gentry and
// Vaikuntanathan (2012) under keys that are added, as in ACORN (Bell et al. 2023): a ciphertext is a·s + 2^32·e + m
// with a public polynomial a, a key s, noise e and values m, so sums of ciphertexts are ciphertexts of sums under sums
// of keys. The security is that of learning with errors over rings
// (docs/adr/0220-ciphertexts-are-opened-by-the-sum-of-their-keys.md). A key encrypts one vector. The package adds no
// keys: package secagg does, unseen.
package homomorphic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/tuneinsight/lattigo/v6/ring"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/discrete"
	"github.com/starling-network/starling/exchange/prg"
)

// Limits of a sum.
const (
	MaxAdded   = 128     // ciphertexts
	MaxEntries = 1 << 24 // of a vector: a ciphertext has 6 bytes for each
)

// KeySize is the number of elements of a key, and the degree of the polynomials.
const KeySize = 2048

// The modulus is the largest prime below 2^48 that is 1 modulo 2·KeySize. Keys and noise are discrete Gaussians with a
// parameter of deviation: the modulus is 2^41 times as large, where the table of homomorphicencryption.org (2018) has
// 2^52 for 128 bits at this degree. The sums of keys and of noise are disclosed. Of two honest keys they leave the
// hardness of a parameter of deviation/2, with 2^42 (Kim, Lee, Seo and Song 2023, theorem 1).
const (
	modulus     = 1<<48 - 1<<14 + 1
	deviation   = 128
	elementSize = 6 // bytes of a number below the modulus
)

// far is how many standard deviations the noise of a sum is away from 0 at most; more has a probability below 2^-100.
const far = 12

// Errors of this package.
var (
	ErrSize = errors.New("homomorphic encryption: the vector is too long")
	ErrText = errors.New("homomorphic encryption: not a ciphertext")
	ErrOpen = errors.New("homomorphic encryption: the key does not open the sum")
)

// Size is the number of bytes of a ciphertext of a vector.
func Size(entries int) int { return elementSize * entries }

// Fits refuses a vector that is too long, with the bytes that it would take.
func Fits(entries int) error {
	if entries < 1 || entries > MaxEntries {
		return fmt.Errorf("%w: %d elements are %d MB in every round of every owner, and at most %d, of %d MB, are "+
			"encrypted", ErrSize, entries, Size(entries)/1e6, MaxEntries, Size(MaxEntries)/1e6)
	}
	return nil
}

// degreeRing is the ring of the polynomials.
var degreeRing = sync.OnceValue(func() *ring.Ring {
	r, err := ring.NewRing(KeySize, []uint64{modulus})
	if err != nil {
		panic("homomorphic: " + err.Error()) // the modulus is a constant
	}
	return r
})

// lift is a number modulo the modulus.
func lift(x int64) uint64 {
	if x %= modulus; x < 0 {
		x += modulus
	}
	return uint64(x)
}

// pads calls a function with each part of a vector and the coefficients of a·s for it. The public polynomials follow
// from the session alone.
func pads(session canon.Digest, key []uint32, entries int, use func(from int, pad []uint64)) {
	r := degreeRing()
	s, p := r.NewPoly(), r.NewPoly()
	for i, x := range key {
		s.Coeffs[0][i] = lift(int64(int32(x)))
	}
	r.NTT(s, s)
	r.MForm(s, s)
	for k, from := uint64(0), 0; from < entries; k, from = k+1, from+KeySize {
		public := prg.New(prg.Derive(session[:], "starling/homomorphic/public", binary.LittleEndian.AppendUint64(nil, k)))
		for i := range p.Coeffs[0] { // of the transformed polynomial, which is as uniform
			p.Coeffs[0][i] = public.Below(modulus)
		}
		r.MulCoeffsMontgomery(p, s, p)
		r.INTT(p, p)
		use(from, p.Coeffs[0][:min(KeySize, entries-from)])
	}
}

// Encrypt encrypts values in a session, and returns the key, whose elements are added modulo 2^32, and the ciphertext.
// The seed is random, secret and of this vector alone.
func Encrypt(session canon.Digest, values []uint32, seed prg.Key) (key []uint32, ciphertext []byte, err error) {
	if err := Fits(len(values)); err != nil {
		return nil, nil, err
	}
	key, noise := make([]uint32, KeySize), make([]uint32, len(values))
	if err := errors.Join(discrete.Add(key, deviation, prg.Derive(seed[:], "starling/homomorphic/key")),
		discrete.Add(noise, deviation, prg.Derive(seed[:], "starling/homomorphic/noise"))); err != nil {
		return nil, nil, err
	}
	ciphertext = make([]byte, 0, Size(len(values)))
	pads(session, key, len(values), func(from int, pad []uint64) {
		for i, x := range pad {
			v := int64(int32(noise[from+i]))<<32 + int64(int32(values[from+i]))
			x += lift(v)
			if x >= modulus {
				x -= modulus
			}
			b := binary.LittleEndian.AppendUint64(ciphertext, x)
			ciphertext = b[:len(b)-8+elementSize]
		}
	})
	return key, ciphertext, nil
}

// Sum adds the ciphertexts of one session.
type Sum struct {
	session canon.Digest
	total   []uint64
	added   int
}

// NewSum is an empty sum of ciphertexts of vectors of a number of entries.
func NewSum(session canon.Digest, entries int) (*Sum, error) {
	if err := Fits(entries); err != nil {
		return nil, err
	}
	return &Sum{session: session, total: make([]uint64, entries)}, nil
}

// Check refuses bytes that Add would refuse.
func (s *Sum) Check(b []byte) error {
	if len(b) != Size(len(s.total)) {
		return fmt.Errorf("%w: %d bytes, wanted %d", ErrText, len(b), Size(len(s.total)))
	}
	if s.added >= MaxAdded {
		return fmt.Errorf("%w: the sum has all its %d", ErrText, MaxAdded)
	}
	for i := range s.total {
		if x := element(b, i); x >= modulus {
			return fmt.Errorf("%w: element %d is %d, wanted less than %d", ErrText, i, x, uint64(modulus))
		}
	}
	return nil
}

// element is one number of a ciphertext.
func element(b []byte, i int) uint64 {
	b = b[elementSize*i:]
	return uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint16(b[4:]))<<32
}

// Add adds a ciphertext. One that is refused changes nothing.
func (s *Sum) Add(b []byte) error {
	if err := s.Check(b); err != nil {
		return err
	}
	for i := range s.total {
		s.total[i] = (s.total[i] + element(b, i)) % modulus
	}
	s.added++
	return nil
}

// Open opens the sum with the sum of the keys of its ciphertexts: it is that of their vectors modulo 2^32. Another key
// is refused, and so are ciphertexts that are none: the noise that they leave is too large.
func (s *Sum) Open(key []uint32) ([]uint32, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("%w: it has %d elements, wanted %d", ErrOpen, len(key), KeySize)
	}
	values := make([]uint32, len(s.total))
	most := int64(far * deviation * math.Sqrt(float64(s.added)))
	away := int64(0)
	pads(s.session, key, len(s.total), func(from int, pad []uint64) {
		for i, x := range pad {
			v := int64((s.total[from+i] + modulus - x) % modulus)
			if v > modulus/2 {
				v -= modulus
			}
			noise := (v + 1<<31) >> 32
			values[from+i], away = uint32(v), max(away, noise, -noise)
		}
	})
	if away > most+MaxAdded { // values of many owners carry into the noise
		return nil, fmt.Errorf("%w: an owner sent what is no ciphertext, or another key", ErrOpen)
	}
	return values, nil
}
