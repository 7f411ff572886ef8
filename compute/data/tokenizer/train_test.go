package tokenizer

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer/bpe"
)

// joined merges a pair from left to right.
func joined(tokens []uint32, p bpe.Pair, id uint32) (out []uint32) {
	for _, next := range tokens {
		if n := len(out); n > 0 && next == p.Right && out[n-1] == p.Left {
			out[n-1] = id
		} else {
			out = append(out, next)
		}
	}
	return out
}

// slowTrain is the definition: count every pair again before each merge.
func slowTrain(docs []string, size int) (pieces []string) {
	pieces = slices.Clone(Bytes().pieces)
	var all [][]uint32
	for _, d := range docs {
		for _, w := range wordsOf(d) {
			all = append(all, Bytes().Encode(w))
		}
	}
	for len(pieces) < size-1 {
		counts := map[bpe.Pair]int64{}
		for _, w := range all {
			for i := range len(w) - 1 {
				counts[bpe.Pair{Left: w[i], Right: w[i+1]}]++
			}
		}
		best, most := bpe.Pair{}, int64(1)
		for p, n := range counts {
			if n > most || n == most && n > 1 && (p.Left < best.Left || p.Left == best.Left && p.Right < best.Right) {
				best, most = p, n
			}
		}
		if most < 2 {
			break
		}
		piece := pieces[best.Left] + pieces[best.Right]
		id := slices.Index(pieces, piece)
		if id < 0 {
			id = len(pieces)
			pieces = append(pieces, piece)
		}
		for i := range all {
			all[i] = joined(all[i], best, uint32(id))
		}
	}
	return append(pieces, EndOfText)
}

func TestTrainMatchesDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	letters := func(kinds int) string {
		b := make([]byte, 60)
		for i := range b {
			b[i] = "ab c"[r.IntN(kinds)]
		}
		return string(b)
	}
	for i := range 100 {
		docs := []string{randomText(r), letters(2 + i%3), letters(1 + i%3), sample[r.IntN(len(sample)):]}
		size := 257 + r.IntN(80)
		got := trained(t, size, docs...)
		if want := slowTrain(docs, size); !slices.Equal(got.pieces, want) {
			t.Fatalf("%q, %d: got %q, want %q", docs, size, got.pieces[256:], want[256:])
		}
	}
}

func TestTrainBreaksTiesByID(t *testing.T) {
	tok := trained(t, 258, "zy zy ba ba dc dc")
	if got := tok.pieces[256]; got != " b" {
		t.Errorf("the first merge is %q, want \" b\": the smallest pair of the most frequent", got)
	}
}

func TestTrainIgnoresOrderOfDocuments(t *testing.T) {
	docs := []string{sample, "the mat\n", "12 12 123", "日本 日本語"}
	want := trained(t, 300, docs...).JSON()
	slices.Reverse(docs)
	if !bytes.Equal(trained(t, 300, docs...).JSON(), want) {
		t.Error("another order of the documents gives another tokenizer")
	}
}

func TestTrainBounds(t *testing.T) {
	tok := trained(t, 50257, "abab")
	if end, ok := tok.EndOfText(); !ok || int(end) != tok.VocabSize()-1 || tok.VocabSize() != 258 {
		t.Errorf("end of text %d, vocabulary %d; want 257 and 258", end, tok.VocabSize())
	}
	if _, err := TrainBPE(slices.Values([]string{"", ""}), 300); !errors.Is(err, ErrNoText) {
		t.Errorf("no text: %v", err)
	}
	for _, size := range []int{-1, 256, MaxVocab + 1} {
		if _, err := TrainBPE(slices.Values([]string{"a"}), size); err == nil {
			t.Errorf("a vocabulary of %d was trained", size)
		}
	}
	long := trained(t, 600, strings.Repeat("ab", 1<<18))
	for _, p := range long.pieces {
		if len(p) > trainWord {
			t.Fatalf("a token of %d bytes", len(p))
		}
	}
}
