package tokenizer

import (
	"errors"
	"fmt"
	"iter"

	"github.com/starling-network/starling/compute/data/tokenizer/bpe"
	"github.com/starling-network/starling/compute/data/tokenizer/pattern"
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
			n := pattern.GPT2.WordLen(text)
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
	t.pattern = pattern.GPT2
	t.pieces, t.merges = bpe.Learn(counts, vocabSize-1)
	end := addedToken{ID: uint32(len(t.pieces)), Content: EndOfText, Special: true, inVocab: true}
	if err := t.add(end); err != nil {
		panic(fmt.Sprintf("tokenizer: the id after the last one is taken: %v", err))
	}
	return t, nil
}
