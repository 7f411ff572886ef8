package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/role/bundle"
)

const (
	shardTokens = 100
	seqLen      = 16
)

// whole is a corpus of 200 shards.
func whole(t *testing.T) *data.Corpus {
	t.Helper()
	text := make([]byte, 200*shardTokens)
	for i := range text {
		text[i] = byte(i * i % 251)
	}
	c, err := data.Build([]source.File{{Format: source.Text, Data: text}}, tokenizer.Bytes(), 0.1)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// holder gives out the shards of a corpus, and counts.
type holder struct {
	of *data.Corpus

	mu     sync.Mutex
	given  []int
	broken map[int]error         // what is given in place of a shard, once
	wrong  map[int][]byte        // what is given in place of a shard
	waits  map[int]chan struct{} // until these are closed
}

func (h *holder) shard(ctx context.Context, i int) ([]byte, error) {
	h.mu.Lock()
	wait := h.waits[i]
	h.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.given = append(h.given, i)
	if err := h.broken[i]; err != nil {
		delete(h.broken, i)
		return nil, err
	}
	if raw, ok := h.wrong[i]; ok {
		return raw, nil
	}
	return h.of.Shards(shardTokens)[i], nil
}

// at is the address of the first step of a unit of 6.
func at(round, unit uint32) data.Address {
	return data.Address{Seed: 7, Round: round, Unit: unit, Units: 3, StepsPerRound: 6, Batch: 2}
}

// needs are the shards that some steps of a unit read, in their order.
func needs(t *testing.T, c *data.Corpus, a data.Address, steps uint32) []int {
	t.Helper()
	var batches [][]data.TokenRange
	for ; a.Step < steps; a.Step++ {
		spans, err := c.Manifest(shardTokens).Spans(a, seqLen, 0, 2*(seqLen+1))
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, spans)
	}
	x, err := data.NewBatches(c.Manifest(shardTokens), batches)
	if err != nil {
		t.Fatal(err)
	}
	return x.Shards()
}

// wantBatch reads the batch at an address, and compares it with that of the whole corpus.
func wantBatch(t *testing.T, c *Corpus, whole *data.Corpus, a data.Address) {
	t.Helper()
	got, want := make([]int32, 2*(seqLen+1)), make([]int32, 2*(seqLen+1))
	if err := errors.Join(c.Batch(got, a, seqLen), whole.Batch(want, a, seqLen)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("another batch at %+v", a)
	}
}

// A unit reads the batches of the whole corpus, and fetches the shards that they lie in, each once.
func TestUnitFetchesItsShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := whole(t)
		h := &holder{of: of}
		c := New(t.Context(), of.Manifest(shardTokens), h.shard)
		for unit := range uint32(3) {
			h.given = nil
			a := at(1, unit)
			done, err := c.Begin(t.Context(), a, a.StepsPerRound, seqLen)
			if err != nil {
				t.Fatal(err)
			}
			for a.Step = range a.StepsPerRound {
				wantBatch(t, c, of, a)
			}
			done()
			synctest.Wait()
			got, want := slices.Sorted(slices.Values(h.given)), needs(t, of, at(1, unit), 6)
			for _, i := range got {
				if !slices.Contains(want, i) {
					t.Errorf("unit %d fetched shard %d, which it does not read", unit, i)
				}
			}
			if !slices.Equal(got, slices.Compact(slices.Clone(got))) {
				t.Errorf("unit %d fetched a shard twice: %d", unit, got)
			}
		}
	})
}

// A part of a unit that is audited fetches no shard behind it; steps that were not announced are read alone, and ahead
// as soon as they follow each other.
func TestPartsOfUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := whole(t)
		h := &holder{of: of}
		c := New(t.Context(), of.Manifest(shardTokens), h.shard)
		a := at(0, 0)
		done, err := c.Begin(t.Context(), a, 2, seqLen)
		if err != nil {
			t.Fatal(err)
		}
		wantBatch(t, c, of, a)
		a.Step = 1
		wantBatch(t, c, of, a)
		done()
		synctest.Wait()
		if want := needs(t, of, at(0, 0), 2); len(h.given) != len(want) {
			t.Errorf("%d shards were fetched, two steps read %d", len(h.given), len(want))
		}
		h.given = nil
		a = at(5, 2)
		wantBatch(t, c, of, a)
		synctest.Wait()
		if want := needs(t, of, at(5, 2), 1); len(h.given) > len(want) {
			t.Errorf("%d shards were fetched, one step reads %d", len(h.given), len(want))
		}
		a.Step = 1
		wantBatch(t, c, of, a)
		synctest.Wait()
		before := len(h.given)
		for a.Step = 2; a.Step < a.StepsPerRound; a.Step++ {
			wantBatch(t, c, of, a)
		}
		if len(h.given) != before {
			t.Error("the steps that follow were not read ahead")
		}
	})
}

// The first step does not wait for the shards of later ones, and the next unit is read while a step waits.
func TestUnitsAreReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := whole(t)
		a := at(0, 0)
		all := needs(t, of, a, 6)
		last := all[len(all)-1]
		h := &holder{of: of, waits: map[int]chan struct{}{last: make(chan struct{})}}
		c := New(t.Context(), of.Manifest(shardTokens), h.shard)
		done, err := c.Begin(t.Context(), a, 6, seqLen)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		wantBatch(t, c, of, a)
		next, err := c.Begin(t.Context(), at(0, 1), 6, seqLen)
		if err != nil {
			t.Fatal(err)
		}
		defer next()
		synctest.Wait()
		for _, i := range needs(t, of, at(0, 1), 6) {
			if i != last && !slices.Contains(h.given, i) {
				t.Errorf("shard %d of the next unit was not fetched", i)
			}
		}
		read := make(chan struct{})
		go func() {
			a.Step = 5
			wantBatch(t, c, of, a)
			close(read)
		}()
		synctest.Wait()
		select {
		case <-read:
			t.Error("a batch was read before its shard came")
		default:
		}
		close(h.waits[last])
		<-read
	})
}

// A shard that cannot be had is named, and is asked for again with the unit.
func TestMissingShardIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := whole(t)
		a := at(0, 0)
		lost, away := needs(t, of, a, 1)[0], errors.New("no holder has it")
		h := &holder{of: of, broken: map[int]error{lost: away}}
		c := New(t.Context(), of.Manifest(shardTokens), h.shard)
		_, err := c.Begin(t.Context(), a, 6, seqLen)
		var wrong *Error
		if !errors.As(err, &wrong) || wrong.Shard != lost || !errors.Is(err, away) || errors.Is(err, data.ErrShard) {
			t.Fatalf("began with %v", err)
		}
		synctest.Wait()
		done, err := c.Begin(t.Context(), a, 6, seqLen)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		wantBatch(t, c, of, a)
	})
}

// A shard that is truncated, is another, or has tokens that do not exist, gives no batch.
func TestWrongShardsGiveNoBatch(t *testing.T) {
	of := whole(t)
	i := needs(t, of, at(0, 0), 1)[0]
	right := of.Shards(shardTokens)[i]
	flipped := slices.Clone(right)
	flipped[3] ^= 1
	foreign := slices.Clone(right)
	for k := range shardTokens {
		foreign[2*k], foreign[2*k+1] = 0xff, 0xff
	}
	bad := of.Manifest(shardTokens)
	bad.Shards = slices.Clone(bad.Shards)
	bad.Shards[i] = rootOf(foreign)
	for name, x := range map[string]struct {
		m   data.Manifest
		raw []byte
	}{
		"truncated": {of.Manifest(shardTokens), right[:40]}, "empty": {of.Manifest(shardTokens), nil},
		"a bit":  {of.Manifest(shardTokens), flipped},
		"others": {of.Manifest(shardTokens), of.Shards(shardTokens)[i+1]}, "foreign tokens": {bad, foreign},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := &holder{of: of, wrong: map[int][]byte{i: x.raw}}
			c := New(t.Context(), x.m, h.shard)
			for range 2 { // announced or not
				_, err := c.Begin(t.Context(), at(0, 0), 6, seqLen)
				if wrong := (*Error)(nil); !errors.As(err, &wrong) || wrong.Shard != i || !errors.Is(err, data.ErrShard) {
					t.Errorf("%s: began with %v", name, err)
				}
				synctest.Wait()
				if err := c.Batch(make([]int32, 2*(seqLen+1)), at(0, 0), seqLen); !errors.Is(err, data.ErrShard) {
					t.Errorf("%s: read with %v", name, err)
				}
			}
		})
	}
}

func rootOf(raw []byte) canon.Digest { return canon.NewTree([]canon.Digest{canon.Leaf(raw)}).Root() }

// A batch that waits for a shard ends with the action that began its unit, and the unit can be begun again.
func TestReadingEndsWithItsAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := whole(t)
		a := at(0, 0)
		all := needs(t, of, a, 6)
		last := all[len(all)-1]
		h := &holder{of: of, waits: map[int]chan struct{}{last: make(chan struct{})}}
		c := New(t.Context(), of.Manifest(shardTokens), h.shard)
		ctx, stop := context.WithCancel(t.Context())
		done, err := c.Begin(ctx, a, 6, seqLen)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			late := a
			late.Step = 5
			ended <- c.Batch(make([]int32, 2*(seqLen+1)), late, seqLen)
		}()
		synctest.Wait()
		stop()
		if err := <-ended; !errors.Is(err, cpu.ErrStopped) {
			t.Errorf("ended with %v", err)
		}
		done()
		close(h.waits[last])
		synctest.Wait()
		if done, err = c.Begin(t.Context(), a, 6, seqLen); err != nil {
			t.Fatal(err)
		}
		a.Step = 5
		wantBatch(t, c, of, a)
		done()
		if c.waiting != 0 {
			t.Errorf("%d units wait", c.waiting)
		}
	})
}

// Units of any number leave a bounded number of readings and shards in memory, and those that are many are read when
// their turn comes.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := whole(t)
		h := &holder{of: of}
		c := New(t.Context(), of.Manifest(shardTokens), h.shard)
		for round := range uint32(20) {
			for unit := range uint32(3) {
				if _, err := c.Begin(t.Context(), at(round, unit), 6, seqLen); err != nil { // done is never called
					t.Fatal(err)
				}
				for a := at(round, unit); a.Step < a.StepsPerRound; a.Step++ {
					wantBatch(t, c, of, a)
				}
			}
			if len(c.readings) > bundle.MaxReadings {
				t.Fatalf("%d groups of batches are in memory", len(c.readings))
			}
		}
		big := New(t.Context(), of.Manifest(shardTokens), nil)
		for i := range 40 {
			big.keep(i, make([]byte, bundle.ShardMemory/8))
		}
		if len(big.verified) != 8 || big.known(39) == nil || big.known(31) != nil {
			t.Errorf("%d shards are in memory", len(big.verified))
		}
	})
}

// Steps that are read alone end no reading of a unit.
func TestSingleStepsEndNoUnit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := whole(t)
		a := at(0, 0)
		lost := needs(t, of, a, 1)[0]
		h := &holder{of: of, waits: map[int]chan struct{}{lost: make(chan struct{})}}
		c := New(t.Context(), of.Manifest(shardTokens), h.shard)
		began := make(chan error)
		go func() {
			done, err := c.Begin(t.Context(), a, 6, seqLen)
			if err == nil {
				done()
			}
			began <- err
		}()
		synctest.Wait()
		for round := uint32(1); round < 20; round++ {
			if !slices.Contains(needs(t, of, at(round, 1), 1), lost) {
				wantBatch(t, c, of, at(round, 1))
			}
		}
		close(h.waits[lost])
		if err := <-began; err != nil {
			t.Errorf("the unit ended with %v", err)
		}
	})
}

// A unit whose steps have more tokens than are read at a time is read step after step, each while the one before is
// computed.
func TestLargeStepsAreReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := whole(t)
		a := data.Address{Units: 1, StepsPerRound: 3, Batch: bundle.ReadingTokens/seqLen + 1}
		c := New(t.Context(), of.Manifest(shardTokens), (&holder{of: of}).shard)
		done, err := c.Begin(t.Context(), a, 3, seqLen)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		synctest.Wait()
		got := make([]int32, a.Batch*(seqLen+1))
		if err := c.Batch(got, a, seqLen); err != nil {
			t.Fatal(err)
		}
		if len(c.readings) != 2 || c.readings[1].first.Step != 1 || c.readings[1].steps != 1 {
			t.Errorf("%d readings after the first step", len(c.readings))
		}
	})
}

// Screening and disputes read what the whole corpus has.
func TestOthersReadTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := whole(t)
		c := New(t.Context(), of.Manifest(shardTokens), (&holder{of: of}).shard)
		got, err := c.HeldOut(12, 3, seqLen, 64)
		want, wrong := of.HeldOut(12, 3, seqLen, 64)
		if err != nil || wrong != nil || !slices.Equal(got, want) {
			t.Errorf("another batch is held out: %v, %v", err, wrong)
		}
		m := c.Manifest(1)
		spans, err := m.Spans(at(2, 1), seqLen, 3, 30)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := c.LeafProofs(m, spans)
		if err != nil {
			t.Fatal(err)
		}
		tokens, err := m.Read(spans, shown)
		if batch := make([]int32, 2*(seqLen+1)); err != nil || of.Batch(batch, at(2, 1), seqLen) != nil ||
			fmt.Sprint(tokens) != fmt.Sprint(batch[3:30]) {
			t.Errorf("other tokens are shown: %v", err)
		}
		m.TrainTokens, m.ValTokens = m.TrainTokens+m.ValTokens, 0
		none := New(t.Context(), m, nil)
		if held, err := none.HeldOut(1, 3, seqLen, 64); held != nil || err != nil {
			t.Errorf("nothing is held out, and %d tokens are read: %v", len(held), err)
		}
	})
}
