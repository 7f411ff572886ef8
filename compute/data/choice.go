package data

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
)

// Choice says which tokens of documents are to be predicted. Where not all are, the vocabulary of the corpus is twice
// that of the tokenizer: a token that is read and not predicted is the token plus the size of the tokenizer's. So what
// is learnt is in the shards, and in their digests. A token belongs to a part of the text if the tokens before it are
// those of the text before the part.
type Choice struct {
	Learnt bool // those of the parts in source.Document.Learnt only
	// number of tokens to a multiple of which documents are filled up; neither the filling nor the first token of a
	// document is to be predicted; 0: documents follow each other
	Pad int
	// number of documents that make one example: each is cut to Pad tokens, within which something of it must be
	// predicted; 0: a document may be longer, and is an example or several
	Group int
	// number of tokens of the longest answer, which is one part of its document: a prompt has at most the rest of Pad;
	// 0: any
	Answer int
	// number of tokens of Pad that are neither the prompt's nor the answer's
	Room int
	// the answer of a document is what others are compared with, and may be longer than Answer
	Compared bool
}

// example is to a multiple of how many tokens the corpus is divided, and a source repeated; 0: to any.
func (c Choice) example() int { return c.Pad * max(1, c.Group) }

// ErrUnlearnt is returned for an example of which nothing would be predicted.
var ErrUnlearnt = errors.New("nothing of its answer is within the length of a sequence")

// ErrAnswer is returned for an example whose prompt or whose answer is too long, that has no prompt or several answers.
var ErrAnswer = errors.New("an example is a prompt and one answer")

// asked reports whether an answer follows a prompt, if the answers are drawn.
func (c Choice) asked(ids []uint32, vocab uint32) error {
	if c.Answer > 0 && len(ids) > 0 && ids[0] < vocab {
		return fmt.Errorf("%w: this one has no prompt, and an answer is drawn after a token", ErrAnswer)
	}
	return nil
}

// checked reports whether something of the tokens of a document of a group, filled up from n of them, is predicted, and
// an answer as long as it may be.
func (c Choice) checked(ids []uint32, n int, vocab uint32) error {
	predicted := func(id uint32) bool { return id < vocab }
	first := min(1, len(ids))
	from := slices.IndexFunc(ids[first:], predicted) + first
	if c.Group > 0 && from < first {
		return ErrUnlearnt
	}
	if c.Answer == 0 {
		return nil
	}
	to := from
	for to < len(ids) && predicted(ids[to]) {
		to++
	}
	switch {
	case to-from > c.Answer && !c.Compared || from > c.Pad-c.Answer-c.Room || n > c.Pad:
		most := c.Answer
		if c.Compared {
			most = c.Pad - from
		}
		return fmt.Errorf("%w: %d tokens, of which %d are the prompt's: at most %d of a prompt and %d of an answer are taken",
			ErrAnswer, n, from, c.Pad-c.Answer-c.Room, most)
	case slices.ContainsFunc(ids[to:], predicted):
		return fmt.Errorf("%w: this one has several", ErrAnswer)
	}
	return nil
}

// silences reports whether a corpus has tokens that are not to be predicted.
func (c Choice) silences() bool { return c.Learnt || c.Pad > 0 }

// padded is a document of some tokens.
func (c Choice) padded(ids []uint32, vocab uint32) []uint32 {
	if c.Pad == 0 || len(ids) == 0 {
		return ids
	}
	ids = slices.Clone(ids)
	if ids[0] < vocab {
		ids[0] += vocab
	}
	if c.Group > 0 {
		ids = ids[:min(len(ids), c.Pad)]
	}
	for len(ids)%c.Pad != 0 {
		ids = append(ids, vocab)
	}
	return ids
}

// silenced are the tokens of a document, with those marked that are not to be predicted, and whether what follows it
// is.
func silenced(t *tokenizer.Tokenizer, d source.Document) (ids []uint32, goesOn bool) {
	ids = t.EncodeText(d.Text)
	if d.Learnt == nil {
		return ids, true
	}
	marked := make([]uint32, len(ids))
	for i, id := range ids {
		marked[i] = id + uint32(t.VocabSize())
	}
	for _, s := range d.Learnt {
		from, to := before(t, ids, d.Text[:s.From]), before(t, ids, d.Text[:s.To])
		if s.To == len(d.Text) {
			to, goesOn = len(ids), true
		}
		copy(marked[min(from, to):to], ids[min(from, to):to])
	}
	return marked, goesOn
}

// before is how many of the first tokens are also those of a beginning of the text.
func before(t *tokenizer.Tokenizer, ids []uint32, beginning string) int {
	if beginning == "" {
		return 0
	}
	other := t.EncodeText(beginning)
	n := 0
	for n < len(ids) && n < len(other) && ids[n] == other[n] {
		n++
	}
	return n
}
