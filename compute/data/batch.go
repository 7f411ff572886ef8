// Package data turns documents into the batches of a training run. A batch has an address (seed, round, unit, step),
// and every holder of the corpus computes the same batch from it: a worker, its verifier, the referee. Nothing is
// shuffled in memory and no position is kept.
//
// It does no I/O: the caller reads files, of which package source makes documents, and moves shards. It knows nothing
// of programs; a batch is plain token ids.
package data

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/starling-network/starling/compute/data/shuffle"
)

// Address names one batch of a run. In a round, Units units take StepsPerRound steps of Batch windows each.
type Address struct {
	Seed          uint64 `cbor:"1,keyasint"`
	Round         uint32 `cbor:"2,keyasint"`
	Unit          uint32 `cbor:"3,keyasint"` // below Units
	Step          uint32 `cbor:"4,keyasint"` // below StepsPerRound
	Units         uint32 `cbor:"5,keyasint"`
	StepsPerRound uint32 `cbor:"6,keyasint"`
	Batch         uint32 `cbor:"7,keyasint"` // windows a step of one unit
	// windows that follow each other in the corpus and whose order is drawn together (shuffle.InBlocks); 0: all
	Block uint64 `cbor:"8,keyasint,omitempty"`
}

// ErrAddress is returned for an address that names no batch.
var ErrAddress = errors.New("data: invalid address")

// TooShortError is returned when the training tokens do not fill one window.
type TooShortError struct {
	Tokens int // there are
	SeqLen int // a window needs one more
}

func (e *TooShortError) Error() string {
	return fmt.Sprintf("data: %d training tokens do not fill a window of %d and its last target: "+
		"give more text, or a sequence length below %d", e.Tokens, e.SeqLen, e.Tokens)
}

// Windows is the number of windows of seqLen tokens and one target more in the training part: window i starts at token
// i*seqLen, so that every token but the first is a target at most once an epoch. Tokens after the last full window are
// not used.
func (c *Corpus) Windows(seqLen int) int { return windows(c.Train, seqLen) }

func windows(t Tokens, seqLen int) int {
	if seqLen < 1 || t.Len() < 1 {
		return 0
	}
	return (t.Len() - 1) / seqLen
}

// first returns the place of the batch's first window in the run's sequence of windows. Batches follow each other by
// round, then step, then unit; so those of one round, and of rounds with equal Units, StepsPerRound and Batch, share no
// place and leave none out.
func (a Address) first() (uint64, error) {
	if a.Unit >= a.Units || a.Step >= a.StepsPerRound || a.Batch == 0 {
		return 0, fmt.Errorf("%w: unit %d of %d, step %d of %d, %d windows", ErrAddress,
			a.Unit, a.Units, a.Step, a.StepsPerRound, a.Batch)
	}
	steps := uint64(a.Round)*uint64(a.StepsPerRound) + uint64(a.Step)
	inRound := uint64(a.Units) * uint64(a.Batch)
	if high, _ := bits.Mul64(steps+1, inRound); high != 0 {
		return 0, fmt.Errorf("%w: round %d is beyond the end of the sequence", ErrAddress, a.Round)
	}
	return steps*inRound + uint64(a.Unit)*uint64(a.Batch), nil
}

// Batch fills dst, which is [Batch, seqLen+1] row-major, with the windows at an address. The run's sequence of windows
// is one epoch after the other; epoch e has every window of the training part once, in the order of a permutation keyed
// by (seed, e), or of permutations in blocks. The error wraps ErrAddress or is a *TooShortError.
func (c *Corpus) Batch(dst []int32, a Address, seqLen int) error {
	n := c.Windows(seqLen)
	if n == 0 {
		return &TooShortError{Tokens: c.Train.Len(), SeqLen: seqLen}
	}
	if len(dst)/(seqLen+1) != int(a.Batch) || len(dst)%(seqLen+1) != 0 {
		return fmt.Errorf("%w: a buffer of %d for %d windows of %d", ErrAddress, len(dst), a.Batch, seqLen+1)
	}
	place, err := a.first()
	if err != nil {
		return err
	}
	for ; len(dst) > 0; dst, place = dst[seqLen+1:], place+1 {
		c.Train.CopyTo(dst[:seqLen+1], int(a.window(place, uint64(n)))*seqLen)
	}
	return nil
}

// window returns which of n windows is at a place of the run's sequence.
func (a Address) window(place, n uint64) uint64 {
	if a.Block > 0 && a.Block < n {
		return shuffle.InBlocks(a.Seed, place/n, n, a.Block, place%n)
	}
	order := shuffle.New(a.Seed, place/n, n)
	return order.At(place % n)
}

// ValBatches returns at most limit batches, each [batch, seqLen+1] row-major, of windows spread evenly over the
// validation part, in order and without repetition. If it has fewer than batch windows, there is one batch, in which
// they repeat; if it has none, there is no batch.
func (c *Corpus) ValBatches(batch, seqLen, limit int) [][]int32 {
	n := windows(c.Val, seqLen)
	var out [][]int32
	if count := valBatches(n, batch, limit); count > 0 {
		out = make([][]int32, count)
	}
	for i := range out {
		out[i] = make([]int32, batch*(seqLen+1))
		for j := range batch {
			c.Val.CopyTo(out[i][j*(seqLen+1):][:seqLen+1], valWindow(n, i*batch+j, len(out)*batch)*seqLen)
		}
	}
	return out
}

// HeldOut returns one of ValBatches, chosen by a number; nil if there is none.
func (c *Corpus) HeldOut(number uint64, batch, seqLen, limit int) ([]int32, error) {
	held := c.ValBatches(batch, seqLen, limit)
	if len(held) == 0 {
		return nil, nil
	}
	return held[number%uint64(len(held))], nil
}

// HeldOut returns where in the stream the windows of Corpus.HeldOut are; none if there is no such batch. The manifest
// must have passed Check.
func (m Manifest) HeldOut(number uint64, batch, seqLen, limit int) (spans []TokenRange) {
	if seqLen < 1 || m.ValTokens == 0 {
		return nil
	}
	n := int(m.ValTokens-1) / seqLen
	batches := valBatches(n, batch, limit)
	if batches == 0 {
		return nil
	}
	first := int(number%uint64(batches)) * batch
	for k := first; k < first+batch; k++ {
		at := m.TrainTokens + uint64(valWindow(n, k, batches*batch)*seqLen)
		spans = append(spans, TokenRange{at, at + uint64(seqLen) + 1})
	}
	return spans
}

// valBatches is how many batches ValBatches makes of n windows.
func valBatches(n, batch, limit int) int {
	if n == 0 || batch < 1 || limit < 1 {
		return 0
	}
	return min(limit, max(n/batch, 1))
}

// valWindow is which of n windows is at place k of total: k*n/total without overflow.
func valWindow(n, k, total int) int { return k*(n/total) + k*(n%total)/total }
