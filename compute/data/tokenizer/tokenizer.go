// Package tokenizer turns text into token ids and back: byte-level byte-pair encoding (Sennrich et al. 2016; the
// byte-level form of GPT-2, Radford et al. 2019), trained here, and what published models have in a Hugging Face
// tokenizer.json: BPE over bytes or characters, Unigram and WordPiece, with the parts around them.
//
// With byte-level BPE every byte has an id, so any string encodes and Decode(Encode(s)) == s, valid UTF-8 or not
// (unless the file asks for a normalizer, a space before the text, or added tokens that take the white space around
// them). A file with a part that is not known is refused, never read as something else.
package tokenizer

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/data/tokenizer/bpe"
	"github.com/starling-network/starling/compute/data/tokenizer/pattern"
)

// The content of the token that ends a document.
const (
	EndOfText       = "<|endoftext|>"   // by the convention of GPT-2
	Llama3EndOfText = "<|end_of_text|>" // by that of Llama 3
)

// Tokenizer is an immutable vocabulary and its merges. It may be used by several goroutines at once.
type Tokenizer struct {
	pieces []string    // by id: the bytes of the token; "" is an id that is not used
	bytes  [256]uint32 // the ids of the single bytes
	merges bpe.Table
	ids    map[string]uint32 // of added tokens, by content
	added  [2]matcher        // found in the text before merging: first [0], then in what is left [1]

	addedTokens []addedToken      // as in the file, ascending id
	prefixSpace bool              // put a space before text that starts with none
	pattern     pattern.Pattern   // cuts the text before merging
	known       map[string]uint32 // by bytes: words that are tokens as they stand, whatever the merges say; or nil
	after       json.RawMessage   // the file's post-processor, which Encode does not apply
	begin       []string          // the special tokens that it puts before a text
	parts       *parts            // of a tokenizer that is not byte-level BPE of GPT-2 or Llama 3; else nil
	inModel     map[string]uint32 // the vocabulary of the model, while a file is read
}

// Bytes returns the byte-level tokenizer: 256 tokens, the id of a token is its byte, no merges, no special tokens.
func Bytes() *Tokenizer {
	t := &Tokenizer{pieces: make([]string, 256)}
	for b := range 256 {
		t.pieces[b] = string([]byte{byte(b)})
		t.bytes[b] = uint32(b)
	}
	return t
}

// VocabSize is one more than the largest id.
func (t *Tokenizer) VocabSize() int { return len(t.pieces) }

// documentEnds are the contents of the token that ends a document, by the conventions of GPT-2, Llama 3, Llama 2, Gemma
// and DeepSeek.
var documentEnds = []string{EndOfText, Llama3EndOfText, "</s>", "<eos>", "<｜end▁of▁sentence｜>"}

// EndOfText returns the id of the token that ends a document, if there is one.
func (t *Tokenizer) EndOfText() (uint32, bool) {
	for _, content := range documentEnds {
		if id, ok := t.ids[content]; ok {
			return id, true
		}
	}
	return 0, false
}

// Begin returns the ids of the special tokens that the tokenizer puts before a text, such as Llama 3's begin-of-text.
func (t *Tokenizer) Begin() (ids []uint32) {
	for _, content := range t.begin {
		if id, ok := t.ids[content]; ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// EncodeText is Encode of a whole text, from its beginning on: Begin comes first, unless the text begins with it
// already, as one does that a chat template wrote. A text that a model reads or is trained on is encoded so.
func (t *Tokenizer) EncodeText(text string) []uint32 {
	begin, ids := t.Begin(), t.Encode(text)
	if len(begin) == 0 || len(ids) >= len(begin) && slices.Equal(ids[:len(begin)], begin) {
		return ids
	}
	return append(begin, ids...)
}

// Decode returns the bytes that the tokens stand for where they continue other tokens: a tokenizer that puts a space
// before a text leaves it in. The result is not valid UTF-8 where the tokens are not. An id that is not in the
// vocabulary stands for nothing.
func (t *Tokenizer) Decode(ids []uint32) string {
	var b strings.Builder
	for _, id := range ids {
		if int(id) < len(t.pieces) {
			b.WriteString(t.pieces[id])
		}
	}
	return b.String()
}
