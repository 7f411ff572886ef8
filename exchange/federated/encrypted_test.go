package federated

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/exchange/homomorphic"
	"github.com/starling-network/starling/exchange/prg"
)

var encrypted = Conditions{Cohort: 3, Encrypted: true}

// The sum of ciphertexts is to the bit that of vectors under masks, whichever owner leaves before whichever phase, with
// noise and without.
func TestEncryptedSumsAreThoseOfMasks(t *testing.T) {
	for _, p := range append([]Phase{""}, Phases...) {
		for _, noise := range []float64{0, 0.5} {
			c := Conditions{Cohort: 3, Noise: noise}
			masked, err := play(t, owners(t, 5, c), 3, map[int]Phase{1: p})
			if err != nil {
				t.Fatalf("%s: %v", p, err)
			}
			c.Encrypted = true
			r, err := play(t, owners(t, 5, c), 3, map[int]Phase{1: p})
			if err != nil {
				t.Fatalf("%s, encrypted: %v", p, err)
			}
			if !slices.Equal(r.Sum(), masked.Sum()) || r.Cohort() != masked.Cohort() {
				t.Errorf("without owner 1 from %q, noise %g: %v, masked %v", p, noise, r.Sum(), masked.Sum())
			}
		}
	}
}

// A third that leaves has a sum, and more has none.
func TestEncryptedThreshold(t *testing.T) {
	gone := map[int]Phase{1: Vectors, 3: Survivors, 4: Secrets}
	all := owners(t, 10, encrypted)
	if r, err := play(t, all, 3, gone); err != nil || !slices.Equal(r.Sum(), sumOf(all, 1)) {
		t.Errorf("%v", err)
	}
	gone[5] = Survivors
	if r, err := play(t, owners(t, 10, encrypted), 3, gone); err == nil {
		t.Errorf("a sum of six of ten: %v", r.Sum())
	}
}

// A message that is no ciphertext is refused and names its owner, who may send another. A ciphertext under another key
// than the one under masks leaves the round without a sum.
func TestWrongCiphertexts(t *testing.T) {
	all := owners(t, 4, encrypted)
	r, err := NewRound(job, opening, encrypted, weights)
	if err != nil {
		t.Fatal(err)
	}
	next := map[*owner][]byte{}
	each := func(p Phase, change func(i int, b []byte) []byte) {
		t.Helper()
		for i, o := range all {
			b := next[o]
			if p == Keys {
				b = o.first
			}
			if err := r.Take(p, o.name, change(i, b)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			reply, _, err := r.Reply(p, o.name)
			if err == nil && p != Secrets {
				next[o], err = o.Answer(p, reply)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	same := func(_ int, b []byte) []byte { return b }
	each(Keys, same)
	each(Shares, same)
	good := next[all[0]]
	for _, bad := range [][]byte{nil, good[:100], good[:len(good)-1], append(slices.Clone(good), 0),
		append(slices.Clone(good[:maskedKey]), slices.Repeat([]byte{255}, homomorphic.Size(weights+1))...)} {
		if err := r.Take(Vectors, all[0].name, bad); !errors.Is(err, ErrMessage) {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
	each(Vectors, func(i int, b []byte) []byte {
		if i > 0 {
			return b
		}
		_, other, err := homomorphic.Encrypt(Session(job, opening), all[0].values, prg.Key{99})
		if err != nil {
			t.Fatal(err)
		}
		return append(slices.Clone(b[:maskedKey]), other...)
	})
	each(Survivors, same)
	for _, o := range all {
		if err := r.Take(Secrets, o.name, next[o]); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); !errors.Is(err, homomorphic.ErrOpen) || r.Sum() != nil {
		t.Errorf("%v: %v", err, r.Sum())
	}
	if len(r.Faults) != 5 {
		t.Errorf("%d faults", len(r.Faults))
	}
}

// An owner gives one ciphertext under its key, however often the coordinator answers phase Shares: the difference of
// two is that of their vectors.
func TestOneCiphertextUnderAKey(t *testing.T) {
	all := owners(t, 4, Conditions{Cohort: 3, Noise: 0.5, Encrypted: true})
	r, err := NewRound(job, opening, encrypted, weights)
	if err != nil {
		t.Fatal(err)
	}
	var reply []byte
	for _, p := range []Phase{Keys, Shares} {
		for _, o := range all {
			b := o.first
			if p == Shares {
				if reply, _, err = r.Reply(Keys, o.name); err == nil {
					b, err = o.Answer(Keys, reply)
				}
			}
			if err == nil {
				err = r.Take(p, o.name, b)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if reply, _, err = r.Reply(Shares, all[0].name); err != nil {
		t.Fatal(err)
	}
	if b, err := all[0].Answer(Shares, reply); err != nil || len(b) != r.Largest(Vectors) {
		t.Fatalf("%d bytes: %v", len(b), err)
	}
	if b, err := all[0].Answer(Shares, reply); err == nil || len(b) > 0 {
		t.Errorf("again: %d bytes, %v", len(b), err)
	}
}

func TestTooLongToEncrypt(t *testing.T) {
	_, err := NewRound(job, opening, encrypted, homomorphic.MaxEntries)
	if !errors.Is(err, homomorphic.ErrSize) {
		t.Errorf("%v", err)
	}
}
