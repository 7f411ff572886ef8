package data

import (
	"errors"
	"fmt"
)

// ErrVocab is returned for a token that the tokenizer does not have.
var ErrVocab = errors.New("a token that the tokenizer does not have: name the tokenizer that the file was made with")

// within returns an error about the first token that is not below vocab. before is how many tokens of the file come
// before t.
func (t Tokens) within(vocab uint32, before int) error {
	for i := range t.Len() {
		if id := t.At(i); id >= vocab {
			return fmt.Errorf("%w: token %d is %d, and the ids are below %d", ErrVocab, before+i, id, vocab)
		}
	}
	return nil
}

// join appends the tokens of a file, whose ids fit.
func (t Tokens) join(more Tokens) Tokens {
	if t.width == more.width {
		t.raw = append(t.raw, more.raw...)
		return t
	}
	for i := range more.Len() {
		t = t.append([]uint32{more.At(i)})
	}
	return t
}
