package data

import (
	"errors"
	"fmt"
	"slices"
)

// Reader is how a corpus is read: a *Corpus, or one whose shards are fetched when they are read. Units read batches,
// the screening of updates reads held-out ones, and a dispute shows leaves of shards.
type Reader interface {
	// Batch fills dst, which is [a.Batch, seqLen+1] row-major, with the windows at an address (Corpus.Batch).
	Batch(dst []int32, a Address, seqLen int) error
	// HeldOut returns one of at most limit batches of held-out windows, chosen by a number; nil if there is none.
	HeldOut(number uint64, batch, seqLen, limit int) ([]int32, error)
	// Manifest describes the corpus in shards of shardTokens, but for the last.
	Manifest(shardTokens int) Manifest
	// LeafProofs shows the leaves that hold spans of the stream. The manifest is that of the corpus.
	LeafProofs(m Manifest, spans []TokenRange) ([]LeafProof, error)
}

var _ Reader = (*Corpus)(nil)

// ErrBatch is wrapped by the reason why a unit could not be computed whose batch cannot be read.
var ErrBatch = errors.New("data: no batch")

// Batches is some batches of a corpus whose shards are elsewhere: their tokens, put together from the shards that they
// lie in, which may come in any order. A batch can be read once its shards have come. It is for one goroutine at a
// time.
type Batches struct {
	of     Manifest
	at     []int           // of each batch, and the end of the last: its first token in tokens
	tokens []int32         // of the batches
	shards []int           // in which they lie, those of the first batch first
	needs  []int           // of each batch: it lies in so many of the first shards
	pieces map[int][]piece // of the shards that have not come
}

// piece is some tokens of a shard that follow each other.
type piece struct {
	from, n int // tokens, in the shard
	at      int // in Batches.tokens
}

// NewBatches returns batches that are given as spans of the stream, as by Spans; no shard of them has come.
// The manifest must have passed Check. The error wraps ErrAddress.
func NewBatches(m Manifest, batches [][]TokenRange) (*Batches, error) {
	x := &Batches{of: m, at: []int{0}, pieces: map[int][]piece{}}
	at := 0
	for _, spans := range batches {
		for _, s := range spans {
			if s.From > s.To || s.To > m.tokens() {
				return nil, fmt.Errorf("%w: tokens %d to %d of %d", ErrAddress, s.From, s.To, m.tokens())
			}
			for t := s.From; t < s.To; {
				shard, in := int(t/m.ShardTokens), t%m.ShardTokens
				n := min(s.To-t, m.ShardTokens-in)
				if _, known := x.pieces[shard]; !known {
					x.shards = append(x.shards, shard)
				}
				x.pieces[shard] = append(x.pieces[shard], piece{int(in), int(n), at})
				at, t = at+int(n), t+n
			}
		}
		x.at, x.needs = append(x.at, at), append(x.needs, len(x.shards))
	}
	x.tokens = make([]int32, at)
	return x, nil
}

// Shards are those that the batches lie in, each once, in the order in which the batches need them.
func (x *Batches) Shards() []int { return x.shards }

// Fill takes what the batches have of a shard of the manifest, which Manifest.VerifyShard has verified: an error that
// wraps ErrShard for a token that is not one of the vocabulary.
func (x *Batches) Fill(shard int, raw []byte) error {
	t := Tokens{int(x.of.Width), raw}
	for _, p := range x.pieces[shard] {
		for i := range p.n {
			id := t.At(p.from + i)
			if id >= x.of.Vocab {
				return fmt.Errorf("%w: token %d of shard %d is %d, the vocabulary has %d", ErrShard, p.from+i, shard, id,
					x.of.Vocab)
			}
			x.tokens[p.at+i] = int32(id)
		}
	}
	delete(x.pieces, shard)
	return nil
}

// Ready reports whether the shards of a batch, and those of the batches before it, have come.
func (x *Batches) Ready(batch int) bool {
	return !slices.ContainsFunc(x.shards[:x.needs[batch]], func(shard int) bool {
		_, lacks := x.pieces[shard]
		return lacks
	})
}

// Complete reports whether all shards have come.
func (x *Batches) Complete() bool { return len(x.pieces) == 0 }

// Batch returns the tokens of a batch that is ready. They are not to be changed.
func (x *Batches) Batch(batch int) []int32 { return x.tokens[x.at[batch]:x.at[batch+1]] }
