package data

import (
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
)

// encoder makes tokens of documents, one block after the other.
type encoder struct {
	*tokenizer.Encoder
	by     *tokenizer.Tokenizer
	choice Choice
	vocab  uint32 // of the tokenizer
	width  int    // of a token
	end    uint32 // what ends a document
	hasEnd bool
}

func newEncoder(t *tokenizer.Tokenizer, c Choice, width int) *encoder {
	e := &encoder{Encoder: tokenizer.NewEncoder(t), by: t, choice: c, vocab: uint32(t.VocabSize()), width: width}
	e.end, e.hasEnd = t.EndOfText()
	return e
}

// encoded is what was made of a block. With ErrUnlearnt, documents counts those before the one that it is about.
type encoded struct {
	tokens    Tokens
	bytes     int
	documents int
	err       error
}

// block encodes the documents of a block, each with the tokens that the tokenizer puts before and after it.
func (e *encoder) block(b source.Block) (out encoded) {
	docs, err := b.Documents()
	if err != nil {
		return encoded{err: err}
	}
	out.tokens, out.bytes = Tokens{width: e.width}, b.Bytes
	if e.choice.silences() {
		e.silenced(&out, docs)
		return out
	}
	part := func(ids []uint32) { out.tokens = out.tokens.append(ids) }
	for i, d := range docs {
		e.EncodeText(d.Text, i > 0 || b.Begins, part)
		if e.hasEnd && (b.Ends || i < len(docs)-1) {
			out.tokens = out.tokens.append([]uint32{e.end})
		}
	}
	return out
}

// silenced encodes documents of which not every token is to be predicted.
func (e *encoder) silenced(out *encoded, docs []source.Document) {
	for _, d := range docs {
		if !e.choice.Learnt {
			d.Learnt = nil
		}
		ids, goesOn := silenced(e.by, d)
		if last := e.end; e.hasEnd {
			if !goesOn {
				last += e.vocab
			}
			ids = append(ids, last)
		}
		n := len(ids)
		if out.err = e.choice.asked(ids, e.vocab); out.err != nil {
			return
		}
		ids = e.choice.padded(ids, e.vocab)
		if out.err = e.choice.checked(ids, n, e.vocab); out.err != nil {
			return
		}
		out.tokens = out.tokens.append(ids)
		out.documents++
	}
}
