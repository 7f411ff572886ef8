package tokenizer

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Bounds of TrainBPE.
const (
	MinTrained = 257 // the bytes and EndOfText
	trainWord  = 256 // bytes: longer pre-tokens are cut, so that one without an end costs no more than text
)

// ErrNoText is returned for training on documents that are all empty.
var ErrNoText = errors.New("tokenizer: no text to train on: give at least one document that is not empty")

// TrainBPE learns a byte-level BPE vocabulary of vocabSize tokens: the ids 0 to 255 are the bytes, then come the merges
// in the order learnt, and the last is EndOfText. At every step the pair of adjacent tokens with the highest count is
// merged, the smallest pair of ids among equals; the result does not depend on the order of the documents. Learning
// ends early, with a smaller vocabulary, when no pair occurs twice.
func TrainBPE(docs iter.Seq[string], vocabSize int) (*Tokenizer, error) {
	if vocabSize < MinTrained || vocabSize > MaxVocab {
		return nil, fmt.Errorf("tokenizer: a vocabulary of %d cannot be trained: give a size from %d to %d",
			vocabSize, MinTrained, MaxVocab)
	}
	counts := map[string]int64{}
	for text := range docs {
		for len(text) > 0 {
			n := gpt2.wordLen(text)
			for w := text[:n]; len(w) > 0; {
				k := min(len(w), trainWord)
				counts[w[:k]]++
				w = w[k:]
			}
			text = text[n:]
		}
	}
	if len(counts) == 0 {
		return nil, ErrNoText
	}
	t := Bytes()
	t.pattern = gpt2
	newTrainer(t, counts).learn(vocabSize - 1)
	end := addedToken{ID: uint32(len(t.pieces)), Content: EndOfText, Special: true, inVocab: true}
	if err := t.add(end); err != nil {
		panic(fmt.Sprintf("tokenizer: the id after the last one is taken: %v", err))
	}
	return t, nil
}

// trainer holds the distinct words of the documents as they are merged, and the counts of adjacent tokens.
type trainer struct {
	t     *Tokenizer
	ids   map[string]uint32
	words []word
	stats map[pair]*stat
	queue heap[frequency]
	fresh []pair // pairs whose count may have risen in this step
}

type word struct {
	tokens []uint32
	count  int64 // occurrences in the documents
}

// stat is what is known of a pair: its count, and the words that hold it or did.
type stat struct {
	count int64
	words []int32
	fresh bool
}

// frequency is the count that a pair had when it was queued.
type frequency struct {
	pair
	count int64
}

func before(a, b frequency) bool {
	if a.count != b.count {
		return a.count > b.count
	}
	return a.left < b.left || a.left == b.left && a.right < b.right
}

func newTrainer(t *Tokenizer, counts map[string]int64) *trainer {
	tr := &trainer{t: t, ids: map[string]uint32{}, stats: map[pair]*stat{}}
	tr.queue.less = before
	for id, piece := range t.pieces {
		tr.ids[piece] = uint32(id)
	}
	for i, text := range slices.Sorted(maps.Keys(counts)) {
		w := word{tokens: make([]uint32, len(text)), count: counts[text]}
		for j := range len(text) {
			w.tokens[j] = uint32(text[j])
		}
		tr.words = append(tr.words, w)
		tr.count(int32(i), func(pair) bool { return true })
	}
	tr.enqueue()
	return tr
}

// learn merges until the vocabulary has size tokens or no pair occurs twice.
func (tr *trainer) learn(size int) {
	for len(tr.t.pieces) < size {
		best, ok := tr.queue.pop()
		if !ok {
			return
		}
		s := tr.stats[best.pair]
		if s == nil || s.count < 2 {
			continue
		}
		if s.count != best.count { // it has lost some since it was queued
			tr.queue.push(frequency{best.pair, s.count})
			continue
		}
		tr.apply(best.pair, s.words)
	}
}

// apply merges a pair in the words that hold it. Two pairs may spell the same piece, which then has one id.
func (tr *trainer) apply(p pair, words []int32) {
	piece := tr.t.pieces[p.left] + tr.t.pieces[p.right]
	id, ok := tr.ids[piece]
	if !ok {
		id = uint32(len(tr.t.pieces))
		tr.ids[piece] = id
		tr.t.pieces = append(tr.t.pieces, piece)
	}
	tr.t.addMerge(merge{p, id}) // not again, if another way to spell one of its tokens has brought the pair back
	for _, i := range words {
		w := &tr.words[i]
		if !holds(w.tokens, p) {
			continue
		}
		for j := range len(w.tokens) - 1 {
			tr.stats[pair{w.tokens[j], w.tokens[j+1]}].count -= w.count
		}
		w.tokens = replace(w.tokens, p, id)
		tr.count(i, func(p pair) bool { return p.left == id || p.right == id })
	}
	delete(tr.stats, p)
	tr.enqueue()
}

// count adds the pairs of a word to the counts, and notes the word and a rise for those that may be in it for the first
// time.
func (tr *trainer) count(i int32, isNew func(pair) bool) {
	w := &tr.words[i]
	for j := range len(w.tokens) - 1 {
		p := pair{w.tokens[j], w.tokens[j+1]}
		s := tr.stats[p]
		if s == nil {
			s = &stat{}
			tr.stats[p] = s
		}
		s.count += w.count
		if !isNew(p) {
			continue
		}
		if n := len(s.words); n == 0 || s.words[n-1] != i {
			s.words = append(s.words, i)
		}
		if !s.fresh {
			s.fresh = true
			tr.fresh = append(tr.fresh, p)
		}
	}
}

// enqueue queues the pairs whose count may have risen.
func (tr *trainer) enqueue() {
	for _, p := range tr.fresh {
		if s := tr.stats[p]; s != nil {
			s.fresh = false
			tr.queue.push(frequency{p, s.count})
		}
	}
	tr.fresh = tr.fresh[:0]
}

func holds(tokens []uint32, p pair) bool {
	for j := range len(tokens) - 1 {
		if tokens[j] == p.left && tokens[j+1] == p.right {
			return true
		}
	}
	return false
}

// replace merges a pair from left to right, in place.
func replace(tokens []uint32, p pair, id uint32) []uint32 {
	out := tokens[:0]
	for j := 0; j < len(tokens); j++ {
		if j+1 < len(tokens) && tokens[j] == p.left && tokens[j+1] == p.right {
			out = append(out, id)
			j++
		} else {
			out = append(out, tokens[j])
		}
	}
	return out
}
