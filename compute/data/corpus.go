package data

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/data/tokenizer"
)

// Corpus is a tokenized data set: one stream of tokens, of which the last part is for validation. It is not changed
// once built, and may be used by several goroutines at once.
type Corpus struct {
	Vocab uint32 // every token is below
	Train Tokens // the first part of the stream
	Val   Tokens // the rest
	all   Tokens
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

// copyTo fills dst with the tokens from position at.
func (t Tokens) copyTo(dst []int32, at int) {
	for i := range dst {
		dst[i] = int32(t.At(at + i))
	}
}

// Errors of Build and of what it built.
var (
	// ErrEmpty is returned by Build when there is not one token.
	ErrEmpty = errors.New("data: no text in any source: give at least one document that is not empty")
	// ErrFraction is returned by Build.
	ErrFraction = errors.New("data: the validation fraction must be at least 0 and less than 1")
)

// Build tokenizes the documents of all sources in the order given. Before each come the tokens that the tokenizer puts
// before a text, after each the tokenizer's token that ends a document; a tokenizer without either, such as
// tokenizer.Bytes, puts nothing between them. Tokens of a source that has them already are taken as they are. The last
// valFraction of the tokens, rounded down, is for validation.
func Build(sources []Source, t *tokenizer.Tokenizer, valFraction float64) (*Corpus, error) {
	return build(sources, t, valFraction, Choice{})
}

func build(sources []Source, t *tokenizer.Tokenizer, valFraction float64, choice Choice) (*Corpus, error) {
	if !(valFraction >= 0 && valFraction < 1) {
		return nil, fmt.Errorf("%w, not %v", ErrFraction, valFraction)
	}
	vocab := uint32(t.VocabSize())
	whole := vocab
	if choice.silences() {
		whole *= 2
	}
	all := Tokens{width: width(whole)}
	end, hasEnd := t.EndOfText()
	for _, s := range sources {
		part := Tokens{width: all.width}
		if Tokenized(s.Format) {
			ids, err := tokens(s)
			if err == nil {
				err = ids.within(vocab)
			}
			if err != nil {
				return nil, &SourceError{Name: s.Name, Err: err}
			}
			all = all.join(choice.weighed(choice.filled(ids, vocab), s.Weight))
			continue
		}
		docs, err := documents(s)
		if err != nil {
			return nil, err
		}
		if !choice.silences() {
			if s.Weight == 0 || s.Weight == 1 {
				all = all.encoded(docs, t)
			} else {
				all = all.join(choice.weighed(part.encoded(docs, t), s.Weight))
			}
			continue
		}
		for _, d := range docs {
			if !choice.Said {
				d.Said = nil
			}
			ids, goesOn := silenced(t, d)
			if last := end; hasEnd {
				if !goesOn {
					last += vocab
				}
				ids = append(ids, last)
			}
			part = part.append(choice.padded(ids, vocab))
		}
		all = all.join(choice.weighed(part, s.Weight))
	}
	if all.Len() == 0 {
		return nil, ErrEmpty
	}
	val := int(float64(all.Len()) * valFraction)
	if choice.Pad > 0 {
		val -= val % choice.Pad
	}
	return newCorpus(whole, all, val), nil
}

// newCorpus divides a stream, of which the last val tokens are for validation.
func newCorpus(vocab uint32, all Tokens, val int) *Corpus {
	cut := all.Len() - val
	return &Corpus{Vocab: vocab, Train: all.slice(0, cut), Val: all.slice(cut, all.Len()), all: all}
}
