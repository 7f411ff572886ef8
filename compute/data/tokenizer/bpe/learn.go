package bpe

import (
	"maps"
	"slices"
)

// Learn learns a vocabulary of at most size tokens from words and their counts: the ids 0 to 255 are the bytes, then
// come the merges in the order learnt. At every step the pair of adjacent tokens with the highest count is merged, the
// smallest pair of ids among equals. Learning ends early when no pair occurs twice. It returns the bytes of each token.
func Learn(counts map[string]int64, size int) (pieces []string, merges Table) {
	tr := newTrainer(counts)
	tr.learn(size)
	return tr.pieces, *tr.merges
}

// trainer holds the distinct words of the documents as they are merged, and the counts of adjacent tokens.
type trainer struct {
	pieces []string // by id
	merges *Table
	ids    map[string]uint32
	words  []word
	stats  map[Pair]*stat
	queue  heap[frequency]
	fresh  []Pair // pairs whose count may have risen in this step
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
	Pair
	count int64
}

func before(a, b frequency) bool {
	if a.count != b.count {
		return a.count > b.count
	}
	return a.Left < b.Left || a.Left == b.Left && a.Right < b.Right
}

func newTrainer(counts map[string]int64) *trainer {
	tr := &trainer{merges: &Table{}, ids: map[string]uint32{}, stats: map[Pair]*stat{}}
	tr.queue.less = before
	for b := range 256 {
		piece := string([]byte{byte(b)})
		tr.pieces = append(tr.pieces, piece)
		tr.ids[piece] = uint32(b)
	}
	for i, text := range slices.Sorted(maps.Keys(counts)) {
		w := word{tokens: make([]uint32, len(text)), count: counts[text]}
		for j := range len(text) {
			w.tokens[j] = uint32(text[j])
		}
		tr.words = append(tr.words, w)
		tr.count(int32(i), func(Pair) bool { return true })
	}
	tr.enqueue()
	return tr
}

// learn merges until the vocabulary has size tokens or no pair occurs twice.
func (tr *trainer) learn(size int) {
	for len(tr.pieces) < size {
		best, ok := tr.queue.pop()
		if !ok {
			return
		}
		s := tr.stats[best.Pair]
		if s == nil || s.count < 2 {
			continue
		}
		if s.count != best.count { // it has lost some since it was queued
			tr.queue.push(frequency{best.Pair, s.count})
			continue
		}
		tr.apply(best.Pair, s.words)
	}
}

// apply merges a pair in the words that hold it. Two pairs may spell the same piece, which then has one id.
func (tr *trainer) apply(p Pair, words []int32) {
	piece := tr.pieces[p.Left] + tr.pieces[p.Right]
	id, ok := tr.ids[piece]
	if !ok {
		id = uint32(len(tr.pieces))
		tr.ids[piece] = id
		tr.pieces = append(tr.pieces, piece)
	}
	tr.merges.Add(Merge{p, id}) // not again, if another way to spell one of its tokens has brought the pair back
	for _, i := range words {
		w := &tr.words[i]
		if !holds(w.tokens, p) {
			continue
		}
		for j := range len(w.tokens) - 1 {
			tr.stats[Pair{w.tokens[j], w.tokens[j+1]}].count -= w.count
		}
		w.tokens = replace(w.tokens, p, id)
		tr.count(i, func(p Pair) bool { return p.Left == id || p.Right == id })
	}
	delete(tr.stats, p)
	tr.enqueue()
}

// count adds the pairs of a word to the counts, and notes the word and a rise for those that may be in it for the first
// time.
func (tr *trainer) count(i int32, isNew func(Pair) bool) {
	w := &tr.words[i]
	for j := range len(w.tokens) - 1 {
		p := Pair{w.tokens[j], w.tokens[j+1]}
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

func holds(tokens []uint32, p Pair) bool {
	for j := range len(tokens) - 1 {
		if tokens[j] == p.Left && tokens[j+1] == p.Right {
			return true
		}
	}
	return false
}

// replace merges a pair from left to right, in place.
func replace(tokens []uint32, p Pair, id uint32) []uint32 {
	out := tokens[:0]
	for j := 0; j < len(tokens); j++ {
		if j+1 < len(tokens) && tokens[j] == p.Left && tokens[j+1] == p.Right {
			out = append(out, id)
			j++
		} else {
			out = append(out, tokens[j])
		}
	}
	return out
}
