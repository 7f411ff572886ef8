package circuit

import (
	"bytes"
	"errors"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/opening"
)

func openers(t testing.TB, leaves int) (*opening.Verifier, *Opener) {
	t.Helper()
	data, pk, err := SetupOpening(leaves)
	if err != nil {
		t.Fatal(err)
	}
	v, err := opening.NewVerifier(data)
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewOpener(v, pk)
	if err != nil {
		t.Fatal(err)
	}
	return v, o
}

// An opening holds for one key and one list of leaves, with the keys of these leaves and no others.
func TestOpeningsHoldForOneKey(t *testing.T) {
	v, o := openers(t, 3)
	key, _ := opening.NewKey()
	other, _ := opening.NewKey()
	leaves := []uint64{7, 1 << 40, 7}
	made, err := o.Open(key, leaves)
	if err != nil {
		t.Fatal(err)
	}
	again, err := opening.Decode(made.Encode())
	if err != nil || v.Verify(key.Digest(), leaves, again) != nil {
		t.Fatalf("%v", err)
	}
	second, err := o.Open(other, leaves)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		digest canon.Digest
		leaves []uint64
		change func(o *opening.Opening)
		want   error
	}{
		"another key":       {digest: other.Digest(), want: opening.ErrInvalid},
		"another leaf":      {leaves: []uint64{7, 1 << 40, 8}, want: opening.ErrInvalid},
		"another order":     {leaves: []uint64{1 << 40, 7, 7}, want: opening.ErrInvalid},
		"a key of a leaf":   {change: func(o *opening.Opening) { o.Keys[40] ^= 1 }, want: opening.ErrInvalid},
		"points of another": {change: func(o *opening.Opening) { o.Points = second.Points }, want: opening.ErrInvalid},
		"keys of another":   {change: func(o *opening.Opening) { o.Keys = second.Keys }, want: opening.ErrInvalid},
		"a key above the order": {change: func(o *opening.Opening) {
			copy(o.Keys, bytes.Repeat([]byte{255}, opening.KeyBytes))
		}, want: opening.ErrOpening},
		"a digest above the order": {digest: canon.Digest(bytes.Repeat([]byte{255}, 32)), want: opening.ErrInvalid},
		"fewer leaves":             {leaves: leaves[:2], want: opening.ErrOpening},
		"fewer points":             {change: func(o *opening.Opening) { o.Points = o.Points[:96] }, want: opening.ErrOpening},
		"more points": {change: func(o *opening.Opening) { o.Points = append(bytes.Clone(o.Points), 0) },
			want: opening.ErrOpening},
	} {
		changed := made
		changed.Keys = bytes.Clone(made.Keys)
		if c.change != nil {
			c.change(&changed)
		}
		digest, of := key.Digest(), leaves
		if !c.digest.IsZero() {
			digest = c.digest
		}
		if c.leaves != nil {
			of = c.leaves
		}
		if err := v.Verify(digest, of, changed); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	strange, _ := openers(t, 3)
	for range 2 { // the second time it names the other keys
		if err := strange.Verify(key.Digest(), leaves, made); !errors.Is(err, opening.ErrInvalid) {
			t.Errorf("by the keys of another setup: %v", err)
		}
		made.Verifying = strange.Digest()
	}
	if _, err := o.Open(key, leaves[:2]); !errors.Is(err, opening.ErrLeaves) {
		t.Errorf("too few leaves: %v", err)
	}
}

// Digest and keys are those of the published parameters of Poseidon2: a change would be another protocol.
func TestKeysFollow(t *testing.T) {
	x := fr.NewElement(42)
	k, err := opening.ParseKey(x.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	leaf := k.Leaf(7)
	for got, want := range map[canon.Digest]string{
		k.Digest(): "2c26654ecdc6efba2c03505f33d439e81aeb80a269b1fe9fec87668f9e87e74f",
		leaf:       "206bb686d20deee893f1d6b799d4b17e73059e1438c69ce66acb2e4884d88c08",
	} {
		if got.String() != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	seen := map[[opening.KeyBytes]byte]bool{k.Digest(): true}
	for i := range uint64(1000) {
		if leaf := k.Leaf(i); seen[leaf] {
			t.Fatalf("leaf %d has a key of another", i)
		} else {
			seen[leaf] = true
		}
	}
	if _, err := opening.ParseKey(bytes.Repeat([]byte{255}, opening.KeyBytes)); err == nil {
		t.Error("a key above the order of the field")
	}
}

// No bytes are an opening but those that encode one, and none holds but the one that was made.
func FuzzOpening(f *testing.F) {
	v, o := openers(f, 1)
	key, err := opening.NewKey()
	if err != nil {
		f.Fatal(err)
	}
	made, err := o.Open(key, []uint64{3})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(made.Encode())
	f.Add([]byte("starling opening 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := opening.Decode(data)
		if err != nil {
			return
		}
		if !bytes.Equal(got.Encode(), data) {
			t.Error("two encodings of one opening")
		}
		if v.Verify(key.Digest(), []uint64{3}, got) == nil && !bytes.Equal(got.Keys, made.Keys) {
			t.Errorf("keys of %d bytes hold", len(got.Keys))
		}
	})
}

// Keys of proofs from strangers are read within limits.
func FuzzOpeningKey(f *testing.F) {
	data, _, err := SetupOpening(1)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, err := opening.NewVerifier(data); err == nil && (v.Leaves() < 1 || v.Leaves() > opening.MaxLeaves) {
			t.Errorf("a key for %d leaves", v.Leaves())
		}
	})
}

// BenchmarkOpen opens a MiB of leaves. Its setup takes some ten times as long.
func BenchmarkOpen(b *testing.B) {
	const leaves = 256
	v, o := openers(b, leaves)
	key, err := opening.NewKey()
	if err != nil {
		b.Fatal(err)
	}
	drawn := make([]uint64, leaves)
	for i := range drawn {
		drawn[i] = uint64(i) * 101
	}
	made, err := o.Open(key, drawn)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			if _, err := o.Open(key, drawn); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if err := v.Verify(key.Digest(), drawn, made); err != nil {
				b.Fatal(err)
			}
		}
	})
}
