package data

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// batchesOf is the batches of a unit, of which no shard has come.
func batchesOf(t *testing.T, m Manifest, a Address, seqLen int) *Batches {
	t.Helper()
	var batches [][]TokenRange
	for a.Step = range a.StepsPerRound {
		spans, err := m.Spans(a, seqLen, 0, int(a.Batch)*(seqLen+1))
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, spans)
	}
	x, err := NewBatches(m, batches)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// They are those of the corpus, whatever the size of shards, that of windows, and the order in which shards
// come.
func TestBatchesAreTheBatchesOfTheCorpus(t *testing.T) {
	c := textCorpus(t, 4000, 0.1)
	random := rand.New(rand.NewPCG(1, 2))
	for k, shard := range []int{64, 300, 1000, 5000} {
		m, shards := c.Manifest(shard), c.Shards(shard)
		for _, seqLen := range []int{7, 64, 500} {
			a := Address{Seed: 3, Round: 1, Unit: 1, Units: 2, StepsPerRound: 3, Batch: 2, Block: uint64(5 * k)}
			x := batchesOf(t, m, a, seqLen)
			for k, i := range random.Perm(len(x.Shards())) {
				if x.Complete() {
					t.Fatalf("complete after %d shards of %d", k, len(x.Shards()))
				}
				if err := x.Fill(x.Shards()[i], shards[x.Shards()[i]]); err != nil {
					t.Fatal(err)
				}
			}
			if !x.Complete() {
				t.Error("not complete")
			}
			for a.Step = range a.StepsPerRound {
				want := make([]int32, int(a.Batch)*(seqLen+1))
				if err := c.Batch(want, a, seqLen); err != nil {
					t.Fatal(err)
				}
				if got := x.Batch(int(a.Step)); !x.Ready(int(a.Step)) || !slices.Equal(got, want) {
					t.Errorf("shards of %d, windows of %d: step %d differs", shard, seqLen, a.Step)
				}
			}
		}
	}
}

// An epoch in blocks has every window once, and a unit reads the few shards of one or two blocks.
func TestBlocksAreInFewShards(t *testing.T) {
	const seqLen, block = 16, 40
	c := textCorpus(t, 10_000, 0)
	m := c.Manifest(seqLen * block)
	a := Address{Seed: 1, Units: 2, StepsPerRound: 12, Batch: 1, Block: block}
	seen, n := map[int32]bool{}, uint64(c.Windows(seqLen))
	for place := range n {
		seen[int32(a.window(n+place, n))] = true
	}
	if len(seen) != int(n) {
		t.Errorf("%d of %d windows are in an epoch", len(seen), n)
	}
	for a.Unit = range a.Units {
		near, a := batchesOf(t, m, a, seqLen), a
		a.Block = 0
		if all := batchesOf(t, m, a, seqLen); len(near.Shards()) > 4 || len(all.Shards()) < 6 {
			t.Errorf("a unit in blocks reads the shards %d, any other %d", near.Shards(), all.Shards())
		}
	}
}

// A batch is ready when the shards of it, and of those before, have come.
func TestBatchesAreReadyInTurn(t *testing.T) {
	c := textCorpus(t, 4000, 0)
	m, shards := c.Manifest(50), c.Shards(50)
	x := batchesOf(t, m, Address{Units: 1, StepsPerRound: 4, Batch: 1}, 40)
	ready := 0
	for _, i := range x.Shards() {
		if x.Ready(3) {
			t.Error("the last batch is ready before its shard")
		}
		if err := x.Fill(i, shards[i]); err != nil {
			t.Fatal(err)
		}
		for ready < 4 && x.Ready(ready) {
			ready++
		}
	}
	if ready != 4 {
		t.Errorf("%d of 4 batches are ready", ready)
	}
}

func TestBatchesRefuseForeignTokens(t *testing.T) {
	c := textCorpus(t, 1000, 0)
	m := c.Manifest(100)
	m.Vocab = 20
	x, err := NewBatches(m, [][]TokenRange{{{0, 100}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Fill(0, c.Shards(100)[0]); !errors.Is(err, ErrShard) || x.Complete() {
		t.Errorf("a token beyond the vocabulary: %v", err)
	}
	if _, err := NewBatches(m, [][]TokenRange{{{990, 1001}}}); !errors.Is(err, ErrAddress) {
		t.Errorf("beyond the end: %v", err)
	}
}

// The manifest says where the held-out windows are that the corpus reads.
func TestHeldOutWindows(t *testing.T) {
	for _, held := range []float64{0, 0.01, 0.3, 0.9} {
		c := textCorpus(t, 3000, held)
		m := c.Manifest(100)
		for number := range uint64(70) {
			want, err := c.HeldOut(number, 3, 11, 64)
			if err != nil {
				t.Fatal(err)
			}
			spans := m.HeldOut(number, 3, 11, 64)
			if (len(spans) == 0) != (want == nil) {
				t.Fatalf("%v held out, number %d: %d windows, the corpus has a batch of %d", held, number, len(spans), len(want))
			}
			if want == nil {
				continue
			}
			x, err := NewBatches(m, [][]TokenRange{spans})
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range x.Shards() {
				if err := x.Fill(i, c.Shards(100)[i]); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(x.Batch(0), want) {
				t.Errorf("%v held out, number %d: another batch", held, number)
			}
		}
	}
}
