package data

import (
	"slices"

	"github.com/starling-network/starling/compute/data/tokenizer"
)

// Document is a text that is trained on.
type Document struct {
	Text string
	// parts of it that are to be learnt, ascending: the others are read and not predicted; nil: all of it is
	Said []Span
}

// Span is bytes From up to To of a text.
type Span struct{ From, To int }

// Choice is what of documents is to be predicted.
type Choice struct {
	Said bool // what is said in them alone
	// documents are filled up to a multiple of so many tokens, and neither what fills them nor their first token is to be
	// predicted; 0: they follow each other
	Pad int
}

// silences reports whether a corpus has tokens that are not to be predicted.
func (c Choice) silences() bool { return c.Said || c.Pad > 0 }

// BuildChosen is Build where not every token is to be predicted. The vocabulary of the corpus is twice that of the
// tokenizer: a token that is read and not predicted is the token plus the size of the tokenizer's. So what is learnt is
// in the shards, and in their digests.
//
// A token belongs to a part of the text if the tokens before it are those of the text before the part.
func BuildChosen(sources []Source, t *tokenizer.Tokenizer, valFraction float64, c Choice) (*Corpus, error) {
	return build(sources, t, valFraction, c)
}

// padded is a document of some tokens.
func (c Choice) padded(ids []uint32, vocab uint32) []uint32 {
	if c.Pad == 0 || len(ids) == 0 {
		return ids
	}
	ids = slices.Clone(ids)
	if ids[0] < vocab {
		ids[0] += vocab
	}
	for len(ids)%c.Pad != 0 {
		ids = append(ids, vocab)
	}
	return ids
}

// filled is padded of the tokens of a file.
func (c Choice) filled(t Tokens, vocab uint32) Tokens {
	if c.Pad == 0 {
		return t
	}
	ids := make([]uint32, t.Len())
	for i := range ids {
		ids[i] = t.At(i)
	}
	return Tokens{width: 4}.append(c.padded(ids, vocab))
}

// weighed are the tokens of a file as often as its weight says: all of them, and of the part that is left the first.
func (c Choice) weighed(t Tokens, weight float64) Tokens {
	if weight == 0 || weight == 1 {
		return t
	}
	n := int(float64(t.Len()) * weight)
	if c.Pad > 0 {
		n -= n % c.Pad
	}
	out := Tokens{width: t.width}
	for n > 0 {
		k := min(n, t.Len())
		out, n = out.join(t.slice(0, k)), n-k
	}
	return out
}

// silenced are the tokens of a document, with those marked that are not to be predicted, and whether what follows it
// is.
func silenced(t *tokenizer.Tokenizer, d Document) (ids []uint32, goesOn bool) {
	ids = t.EncodeText(d.Text)
	if d.Said == nil {
		return ids, true
	}
	marked := make([]uint32, len(ids))
	for i, id := range ids {
		marked[i] = id + uint32(t.VocabSize())
	}
	for _, s := range d.Said {
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

// texts are those of documents.
func texts(docs []Document) []string {
	out := make([]string, len(docs))
	for i, d := range docs {
		out[i] = d.Text
	}
	return out
}

// plain are documents of texts.
func plain(all []string) []Document {
	docs := make([]Document, len(all))
	for i, s := range all {
		docs[i].Text = s
	}
	return slices.DeleteFunc(docs, func(d Document) bool { return d.Text == "" })
}
