package data

import (
	"encoding/binary"
	"errors"

	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
)

// Corpus is a tokenized data set: one stream of tokens, of which the last part is for validation. It is not changed
// once built, and may be used by several goroutines at once.
type Corpus struct {
	Vocab uint32 // every token is below
	Train Tokens // the first part of the stream
	Val   Tokens // the rest
	all   Tokens
	rest  func(part []byte) // takes a part that is not read for a while; nil: none does
	most  int               // tokens of a shard; 0: as many as are asked for
}

// Tokens is a run of token ids, each 2 bytes or 4, little-endian.
type Tokens struct {
	width int
	raw   []byte
}

// width is the number of bytes of a token of a vocabulary.
func width(vocab uint32) int {
	if vocab <= 1<<16 {
		return 2
	}
	return 4
}

// Len is the number of tokens.
func (t Tokens) Len() int {
	if t.width == 0 {
		return 0
	}
	return len(t.raw) / t.width
}

// At returns token i.
func (t Tokens) At(i int) uint32 {
	if t.width == 2 {
		return uint32(binary.LittleEndian.Uint16(t.raw[2*i:]))
	}
	return binary.LittleEndian.Uint32(t.raw[4*i:])
}

func (t Tokens) slice(from, to int) Tokens {
	return Tokens{t.width, t.raw[from*t.width : to*t.width : to*t.width]}
}

func (t Tokens) append(ids []uint32) Tokens {
	for _, id := range ids {
		if t.width == 2 {
			t.raw = binary.LittleEndian.AppendUint16(t.raw, uint16(id))
		} else {
			t.raw = binary.LittleEndian.AppendUint32(t.raw, id)
		}
	}
	return t
}

// CopyTo fills dst with the tokens from position at. There have to be as many.
func (t Tokens) CopyTo(dst []int32, at int) {
	for i := range dst {
		dst[i] = int32(t.At(at + i))
	}
}

// Errors of Build, and of corpora.
var (
	// ErrEmpty is returned by Write when there is not one token.
	ErrEmpty = errors.New("data: no text in any source: give at least one document that is not empty")
	// ErrFraction is returned by Build and Stream.Corpus.
	ErrFraction = errors.New("data: the validation fraction must be at least 0 and less than 1")
)

// Build is the corpus of files in memory, of which every token is to be predicted: Write says which tokens it has, and
// Stream.Corpus what of them is for validation.
func Build(files []source.File, t *tokenizer.Tokenizer, valFraction float64) (*Corpus, error) {
	return BuildChosen(files, t, valFraction, Choice{})
}

// BuildChosen is Build where not every token is to be predicted.
func BuildChosen(files []source.File, t *tokenizer.Tokenizer, valFraction float64, c Choice) (*Corpus, error) {
	var m memory
	s, err := Write(&m, 0, files, t, c, nil)
	if err != nil {
		return nil, err
	}
	return s.Corpus(m.raw[:s.Bytes()], valFraction, nil)
}

// newCorpus divides a stream, of which the last val tokens are for validation.
func newCorpus(vocab uint32, all Tokens, val int) *Corpus {
	cut := all.Len() - val
	return &Corpus{Vocab: vocab, Train: all.slice(0, cut), Val: all.slice(cut, all.Len()), all: all}
}
