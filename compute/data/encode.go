package data

import (
	"runtime"
	"sync"

	"github.com/starling-network/starling/compute/data/tokenizer"
)

// share is how many bytes of documents one goroutine encodes at a time.
const share = 1 << 20

// encoded appends documents, each with what the tokenizer puts before and after it, of which all is predicted. Several
// are encoded at once; their order is that of the documents.
func (t Tokens) encoded(docs []Document, by *tokenizer.Tokenizer) Tokens {
	end, hasEnd := by.EndOfText()
	encode := func(e *tokenizer.Encoder, into Tokens, docs []Document) Tokens {
		for _, d := range docs {
			e.EncodeText(d.Text, func(ids []uint32) { into = into.append(ids) })
			if hasEnd {
				into = into.append([]uint32{end})
			}
		}
		return into
	}
	encoders := make([]*tokenizer.Encoder, runtime.GOMAXPROCS(0))
	for i := range encoders {
		encoders[i] = tokenizer.NewEncoder(by)
	}
	for len(docs) > 0 {
		parts := shares(docs, len(encoders))
		if len(parts) == 1 {
			t = encode(encoders[0], t, parts[0])
		} else {
			made := make([]Tokens, len(parts))
			var working sync.WaitGroup
			for i, part := range parts {
				working.Go(func() { made[i] = encode(encoders[i], Tokens{width: t.width}, part) })
			}
			working.Wait()
			for _, m := range made {
				t = t.join(m)
			}
		}
		for _, part := range parts {
			docs = docs[len(part):]
		}
	}
	return t
}

// shares are at most n runs of the first documents, each of about share bytes.
func shares(docs []Document, n int) (parts [][]Document) {
	for len(docs) > 0 && len(parts) < n {
		bytes, k := 0, 0
		for k < len(docs) && bytes < share {
			bytes += len(docs[k].Text)
			k++
		}
		parts, docs = append(parts, docs[:k]), docs[k:]
	}
	return parts
}
