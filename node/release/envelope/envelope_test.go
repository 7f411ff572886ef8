package envelope

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
)

func corpus(t *testing.T) (*data.Corpus, data.Manifest) {
	t.Helper()
	text := bytes.Repeat([]byte("the same words again "), 100)
	c, err := data.Build([]source.File{{Format: source.Text, Data: text}}, tokenizer.Bytes(), 0.1)
	if err != nil {
		t.Fatal(err)
	}
	return c, c.Manifest(210)
}

// A shard opens with its key alone, and is another text under another secret. Shards of the same content differ.
func TestShardOpensWithItsKey(t *testing.T) {
	c, m := corpus(t)
	one, err := OpenSecret(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	two := one
	two[0] ^= 1
	var before []byte
	for i, s := range c.Shards(210)[:9] {
		sealed, err := one.Seal(m, i, s)
		if err != nil || len(sealed) != len(s)+addedBytes || bytes.Contains(sealed, s[:16]) || bytes.Equal(sealed, before) {
			t.Fatalf("shard %d: %d bytes, %v", i, len(sealed), err)
		}
		if again, err := one.Seal(m, i, s); err != nil || !bytes.Equal(again, sealed) {
			t.Errorf("shard %d is another the second time: %v", i, err)
		}
		if plain, err := OpenShard(one.Key(i, m.Shards[i]), sealed); err != nil || !bytes.Equal(plain, s) {
			t.Errorf("shard %d does not open: %v", i, err)
		}
		for _, wrong := range [][]byte{nil, two.Key(i, m.Shards[i]), one.Key(i+1, m.Shards[i]), one.Key(i, canon.Digest{9})} {
			if _, err := OpenShard(wrong, sealed); !errors.Is(err, ErrKey) {
				t.Errorf("shard %d opens with another key: %v", i, err)
			}
		}
		for at := range sealed {
			sealed[at] ^= 1
			if _, err := OpenShard(one.Key(i, m.Shards[i]), sealed); !errors.Is(err, ErrKey) {
				t.Fatalf("shard %d opens with byte %d changed: %v", i, at, err)
			}
			sealed[at] ^= 1
		}
		before = sealed
	}
	if _, err := one.Seal(m, 0, c.Shards(210)[0][:10]); !errors.Is(err, data.ErrShard) {
		t.Errorf("a shard that is not the one of the manifest is encrypted: %v", err)
	}
}

// A secret is made once, and no other user can read it.
func TestSecretIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if _, err := ReadSecret(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a secret: %v", err)
	}
	one, err := OpenSecret(path)
	if err != nil {
		t.Fatal(err)
	}
	if two, err := OpenSecret(path); err != nil || two != one || one == (Secret{}) {
		t.Errorf("another secret: %v", err)
	}
	if s, err := os.Stat(path); err != nil || s.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", s.Mode(), err)
	}
	cut := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(cut+".part", one[:9], 0o644); err != nil { // a process that ended while it wrote
		t.Fatal(err)
	}
	if s, err := OpenSecret(cut); err != nil || s == (Secret{}) {
		t.Errorf("after one that was cut off: %v", err)
	}
	if err := os.WriteFile(path, one[:9], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSecret(path); err == nil {
		t.Error("a part of a secret is one")
	}
}

// An envelope opens for the member and the job that it was made for.
func TestEnvelopeOpensForItsMember(t *testing.T) {
	private, err := NewPrivate()
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewPrivate()
	if err != nil {
		t.Fatal(err)
	}
	keys := Keys{3: bytes.Repeat([]byte{3}, KeyBytes), 70_000: bytes.Repeat([]byte{7}, KeyBytes)}
	sealed, err := Enclose(private.PublicKey().Bytes(), "job", "member", []int{70_000, 3}, keys)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Disclose(private, "job", "member", sealed)
	if err != nil || len(got) != 2 || !bytes.Equal(got[3], keys[3]) || !bytes.Equal(got[70_000], keys[70_000]) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Disclose(other, "job", "member", sealed); !errors.Is(err, ErrEnvelope) {
		t.Errorf("it opens with another key: %v", err)
	}
	if _, err := Disclose(private, "jo", "bmember", sealed); !errors.Is(err, ErrEnvelope) {
		t.Errorf("it opens for another job: %v", err)
	}
	if _, err := Enclose(private.PublicKey().Bytes(), "job", "member", make([]int, MaxKeys+1), keys); err == nil {
		t.Error("an envelope has more keys than one may have")
	}
	if _, err := Enclose([]byte{1}, "job", "member", []int{3}, keys); err == nil {
		t.Error("an envelope to no key")
	}
}

func FuzzDisclose(f *testing.F) {
	private, err := NewPrivate()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, []byte("x"))
	f.Add(bytes.Repeat([]byte{1}, recordBytes), []byte{})
	f.Fuzz(func(t *testing.T, records, sealed []byte) {
		if _, err := Disclose(private, "job", "member", sealed); !errors.Is(err, ErrEnvelope) {
			t.Errorf("strange bytes are an envelope: %v", err)
		}
		keys := Keys{}
		if rest := keys.ReadRecords(records); len(rest) >= recordBytes || len(keys)*recordBytes > len(records) {
			t.Errorf("%d keys and %d bytes of %d", len(keys), len(rest), len(records))
		}
	})
}
