// Package hidden has the file of a hidden set of a contest: examples of tokens, and the key that hides them in the
// root which the host commits to.
package hidden

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/arena"
)

// MaxBytes is the limit of the file.
const MaxBytes = 256 << 20

// ErrSet is wrapped by errors about a file that is no hidden set, or not that of a contest.
var ErrSet = errors.New("hidden: not the hidden set")

// format of the file.
const format = "starling/hidden-set/1"

// Set is a hidden set.
type Set struct {
	Format string       `cbor:"1,keyasint"`
	Key    canon.Digest `cbor:"2,keyasint"` // drawn: without it no guess of an example can be checked against the root
	Vocab  uint32       `cbor:"3,keyasint"` // the tokens are below
	// little-endian 32-bit tokens of each example
	Examples [][]byte `cbor:"4,keyasint"`
}

// New makes a set of examples.
func New(key canon.Digest, vocab uint32, examples [][]uint32) (Set, error) {
	s := Set{Format: format, Key: key, Vocab: vocab, Examples: make([][]byte, len(examples))}
	for i, e := range examples {
		for _, id := range e {
			s.Examples[i] = binary.LittleEndian.AppendUint32(s.Examples[i], id)
		}
	}
	return s, s.check()
}

// Decode reads the file of a set.
func Decode(b []byte) (s Set, err error) {
	if len(b) > MaxBytes {
		return s, fmt.Errorf("%w: %d bytes, at most %d", ErrSet, len(b), MaxBytes)
	}
	if err := canon.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%w: %w", ErrSet, err)
	}
	return s, s.check()
}

// Encode is the file of a set.
func (s Set) Encode() []byte { return canon.MustMarshal(s) }

// check checks a set by itself.
func (s Set) check() error {
	switch {
	case s.Format != format:
		return fmt.Errorf("%w: the format %.40q, wanted %s", ErrSet, s.Format, format)
	case s.Key.IsZero():
		return fmt.Errorf("%w: the key is missing", ErrSet)
	case len(s.Examples) < arena.MinExamples || len(s.Examples) > arena.MaxExamples:
		return fmt.Errorf("%w: %d examples, wanted %d to %d", ErrSet, len(s.Examples), arena.MinExamples,
			arena.MaxExamples)
	case s.Vocab < 2 || s.Vocab > arena.MaxVocab:
		return fmt.Errorf("%w: %d tokens, wanted 2 to %d", ErrSet, s.Vocab, arena.MaxVocab)
	}
	for i, e := range s.Examples {
		if len(e)%4 != 0 || len(e) < 8 || len(e) > 4*arena.MaxLength {
			return fmt.Errorf("%w: example %d has %d bytes, wanted 2 to %d tokens of 4", ErrSet, i, len(e), arena.MaxLength)
		}
		for ; len(e) > 0; e = e[4:] {
			if id := binary.LittleEndian.Uint32(e); id >= s.Vocab {
				return fmt.Errorf("%w: example %d has the token %d of %d", ErrSet, i, id, s.Vocab)
			}
		}
	}
	return nil
}

// Root is what the host commits to: the root of a tree whose leaves have the examples, and the key.
func (s Set) Root() canon.Digest {
	leaves := make([]canon.Digest, len(s.Examples))
	for i, e := range s.Examples {
		leaves[i] = canon.Sum("starling/hidden-example/1", s.Key[:], e)
	}
	return canon.NewTree(leaves).Root()
}

// Length is the number of tokens of the longest example.
func (s Set) Length() (most uint32) {
	for _, e := range s.Examples {
		most = max(most, uint32(len(e)/4))
	}
	return most
}

// Of reports whether the set is the one that terms commit to.
func (s Set) Of(t arena.Terms) error {
	switch {
	case s.Root() != t.Set:
		return fmt.Errorf("%w: its root is not that of the contest", ErrSet)
	case len(s.Examples) != int(t.Examples) || s.Vocab != t.Vocab || s.Length() != t.Length:
		return fmt.Errorf("%w: %d examples of at most %d of %d tokens, and the contest has %d of %d of %d", ErrSet,
			len(s.Examples), s.Length(), s.Vocab, t.Examples, t.Length, t.Vocab)
	}
	return nil
}

// Tokens are the tokens of each example.
func (s Set) Tokens() [][]uint32 {
	all := make([][]uint32, len(s.Examples))
	for i, e := range s.Examples {
		for ; len(e) > 0; e = e[4:] {
			all[i] = append(all[i], binary.LittleEndian.Uint32(e))
		}
	}
	return all
}
