package data

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
)

func TestExcerptsShowTheBatch(t *testing.T) {
	c := counting(t, 9000)
	m := c.Manifest(7001) // leaves of 1024 tokens, the last of each shard shorter
	a := Address{Seed: 3, Round: 2, Unit: 1, Step: 4, Units: 2, StepsPerRound: 5, Batch: 7}
	const seqLen = 10
	want := make([]int32, 7*(seqLen+1))
	if err := c.Batch(want, a, seqLen); err != nil {
		t.Fatal(err)
	}
	for lo := 0; lo <= len(want); lo += 5 {
		for hi := lo; hi <= len(want); hi += 7 {
			spans, err := m.Spans(a, seqLen, lo, hi)
			if err != nil {
				t.Fatal(err)
			}
			excerpts, err := c.LeafProofs(m, spans)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Read(spans, excerpts)
			if err != nil || !slices.Equal(got, want[lo:hi]) {
				t.Fatalf("elements %d to %d: %v, %v, want %v", lo, hi, got, err, want[lo:hi])
			}
		}
	}
	if _, err := m.Spans(a, seqLen, 0, len(want)+1); !errors.Is(err, ErrAddress) {
		t.Errorf("more than the batch: %v", err)
	}
	if _, err := m.Spans(a, 1<<20, 0, 1); err == nil {
		t.Error("a window longer than the corpus has a place")
	}
}

func TestChangedExcerptsAreRefused(t *testing.T) {
	c := counting(t, 9000)
	m := c.Manifest(7001)
	spans := []TokenRange{{2000, 2100}, {6990, 7010}, {30000, 30001}}
	good, err := c.LeafProofs(m, spans)
	if err != nil {
		t.Fatal(err)
	}
	if len(good) != 3 {
		t.Fatalf("%d shards", len(good))
	}
	raw := canon.MustMarshal(good)
	for i := range raw {
		bad := bytes.Clone(raw)
		bad[i] ^= 0x10
		var e []LeafProof
		if canon.Unmarshal(bad, &e) != nil {
			continue
		}
		if _, err := m.Read(spans, e); !errors.Is(err, ErrLeafProof) {
			t.Fatalf("byte %d of %d changed: %v", i, len(raw), err)
		}
	}
	for _, bad := range [][]TokenRange{{{2, 1}}, {{0, m.tokens() + 1}}, {{1 << 63, 1 << 63}}} {
		if _, err := m.Read(bad, good); !errors.Is(err, ErrLeafProof) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	c := counting(f, 2000)
	m := c.Manifest(7001)
	spans := []TokenRange{{2000, 2100}, {6990, 7010}}
	want := list(c.all)
	good, err := c.LeafProofs(m, spans)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(canon.MustMarshal(good))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var e []LeafProof
		if canon.Unmarshal(raw, &e) != nil {
			return
		}
		got, err := m.Read(spans, e)
		if err != nil {
			if !errors.Is(err, ErrLeafProof) {
				t.Fatal(err)
			}
			return
		}
		for i, x := range got[:100] {
			if uint32(x) != want[2000+i] {
				t.Fatal("other tokens are shown")
			}
		}
	})
}
