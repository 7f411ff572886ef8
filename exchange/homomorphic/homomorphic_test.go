package homomorphic

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/prg"
)

var session = canon.Sum("session")

// vectors are those of n owners, with elements of all 32 bits.
func vectors(n, entries int) (all [][]uint32, plain []uint32) {
	plain = make([]uint32, entries)
	for i := range n {
		v := make([]uint32, entries)
		prg.Add(v, prg.Key{byte(i), 9})
		for k := range v {
			plain[k] += v[k]
		}
		all = append(all, v)
	}
	return all, plain
}

// encrypted adds the ciphertexts and the keys of vectors.
func encrypted(t testing.TB, all [][]uint32) (*Sum, []uint32) {
	t.Helper()
	s, err := NewSum(session, len(all[0]))
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]uint32, KeySize)
	for i, v := range all {
		key, b, err := Encrypt(session, v, prg.Key{byte(i), 1})
		if err == nil {
			err = s.Add(b)
		}
		if err != nil || len(b) != Size(len(v)) {
			t.Fatal(err)
		}
		for k := range key {
			keys[k] += key[k]
		}
	}
	return s, keys
}

// The sum is that of the plain vectors modulo 2^32, to the bit, whatever the vectors are.
func TestSumsAreExact(t *testing.T) {
	for _, c := range []struct{ n, entries int }{{1, 1}, {3, KeySize - 1}, {5, KeySize}, {20, 2*KeySize + 7},
		{MaxAdded, 100}} {
		all, plain := vectors(c.n, c.entries)
		s, keys := encrypted(t, all)
		if got, err := s.Open(keys); err != nil || !slices.Equal(got, plain) {
			t.Errorf("%d vectors of %d: %v", c.n, c.entries, err)
		}
	}
	same := make([][]uint32, MaxAdded) // the largest elements carry into the noise
	for i := range same {
		same[i] = []uint32{1<<31 - 1, 1 << 31, 1<<32 - 1}
	}
	s, keys := encrypted(t, same)
	if got, err := s.Open(keys); err != nil || !slices.Equal(got, []uint32{1<<32 - MaxAdded, 0, 1<<32 - MaxAdded}) {
		t.Errorf("%v, %v", got, err)
	}
}

// The sum of the keys opens the sum, and neither a part of it nor a sum with another one.
func TestOnlyTheSumIsOpened(t *testing.T) {
	all, _ := vectors(4, 64)
	whole, keys := encrypted(t, all)
	part, some := encrypted(t, all[:3])
	one, own := encrypted(t, all[:1])
	for name, got := range map[string]error{"a part by all keys": opened(part, keys),
		"one by all keys": opened(one, keys), "all by a part": opened(whole, some), "all by one": opened(whole, own),
		"all by none": opened(whole, make([]uint32, KeySize)), "a short key": opened(whole, keys[1:])} {
		if !errors.Is(got, ErrOpen) {
			t.Errorf("%s: %v", name, got)
		}
	}
	other, err := NewSum(canon.Sum("another session"), 64)
	if err != nil {
		t.Fatal(err)
	}
	other.total, other.added = whole.total, whole.added
	if err := opened(other, keys); !errors.Is(err, ErrOpen) {
		t.Errorf("another session: %v", err)
	}
}

func opened(s *Sum, key []uint32) error {
	_, err := s.Open(key)
	return err
}

// The bytes of ciphertexts of zeros, and of large values, are uniform: chi-square over the values of each byte but the
// highest, of which the modulus takes a little.
func TestCiphertextsLookRandom(t *testing.T) {
	for _, value := range []uint32{0, 1 << 31} {
		values := make([]uint32, 40*KeySize)
		for i := range values {
			values[i] = value
		}
		_, b, err := Encrypt(session, values, prg.Key{byte(value >> 24), 7})
		if err != nil {
			t.Fatal(err)
		}
		for at := range elementSize - 1 {
			var count [256]float64
			for i := at; i < len(b); i += elementSize {
				count[b[i]]++
			}
			chi, want := 0.0, float64(len(values))/256
			for _, n := range count {
				chi += (n - want) * (n - want) / want
			}
			if math.Abs(chi-255) > 6*math.Sqrt(2*255) {
				t.Errorf("value %d, byte %d: chi-square %.0f of 255", value, at, chi)
			}
		}
	}
}

// Keys and noise differ between seeds, public polynomials between sessions, and the same seed gives the same bytes.
func TestSeeds(t *testing.T) {
	values := make([]uint32, 10)
	key, b, _ := Encrypt(session, values, prg.Key{1})
	again, c, _ := Encrypt(session, values, prg.Key{1})
	if !slices.Equal(key, again) || !slices.Equal(b, c) {
		t.Error("the same seed")
	}
	if d := canon.Sum("ciphertext", b); d.String()[:16] != golden {
		t.Errorf("the bytes of a ciphertext have changed, which is a change of the protocol: %s", d.String()[:16])
	}
	if other, c, _ := Encrypt(session, values, prg.Key{2}); slices.Equal(key, other) || slices.Equal(b, c) {
		t.Error("another seed")
	}
	if _, c, _ := Encrypt(canon.Sum("other"), values, prg.Key{1}); slices.Equal(b, c) {
		t.Error("another session")
	}
}

const golden = "43912453c9e5735d"

func TestSizes(t *testing.T) {
	for _, n := range []int{0, MaxEntries + 1} {
		_, none := NewSum(session, n)
		_, _, err := Encrypt(session, make([]uint32, n), prg.Key{})
		if !errors.Is(err, ErrSize) || !errors.Is(none, ErrSize) {
			t.Errorf("%d entries: %v, %v", n, err, none)
		}
	}
	all, _ := vectors(MaxAdded, 1)
	s, _ := encrypted(t, all)
	if err := s.Add(make([]byte, Size(1))); !errors.Is(err, ErrText) {
		t.Errorf("too many: %v", err)
	}
}

// FuzzAdd adds bytes of a stranger: they are refused and change nothing, or are numbers below the modulus.
func FuzzAdd(f *testing.F) {
	f.Add(make([]byte, Size(3)))
	f.Add(slices.Repeat([]byte{255}, Size(3)))
	f.Add(binary.LittleEndian.AppendUint64(make([]byte, 10), modulus))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _ := NewSum(session, 3)
		err := s.Add(b)
		if err != nil && (!errors.Is(err, ErrText) || s.added != 0 || slices.Max(s.total) != 0) {
			t.Errorf("%v", err)
		}
		for _, x := range s.total {
			if x >= modulus {
				t.Errorf("%d is not below the modulus", x)
			}
		}
		_, _ = s.Open(make([]uint32, KeySize))
	})
}

func BenchmarkEncrypt(b *testing.B) {
	values := make([]uint32, 1<<17)
	b.SetBytes(int64(4 * len(values)))
	for b.Loop() {
		if _, _, err := Encrypt(session, values, prg.Key{1}); err != nil {
			b.Fatal(err)
		}
	}
}
