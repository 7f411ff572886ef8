// Package decode writes tokens as text again, as the decoders of published tokenizers do, a token at a time.
package decode

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/starling-network/starling/compute/data/tokenizer/component"
)

// byteName is how vocabularies write a byte.
func byteName(b byte) string { return fmt.Sprintf("<0x%02X>", b) }

// ByteOf is the byte that a token writes, if it does.
func ByteOf(token string) (b byte, ok bool) {
	if len(token) != 6 {
		return 0, false
	}
	if _, err := fmt.Sscanf(token, "<0x%02X>", &b); err != nil {
		return 0, false
	}
	return b, byteName(b) == token
}

// Decoder is how a token is written as text that follows other text.
type Decoder struct {
	level     bool // byte symbols
	from, to  []string
	bytes     bool   // <0x41> is a byte
	wordPiece bool   // a space before tokens without the prefix
	prefix    string // of tokens that continue a word
	cleanup   bool
}

type decoderFields struct {
	component.Component
	Replacement string `json:"replacement"`
	Scheme      string `json:"prepend_scheme"`
	Split       *bool  `json:"split"`
	StrRep      string `json:"str_rep"`
	Content     string `json:"content"`
	Start       int    `json:"start"` // what Strip takes of the beginning of a whole text
	Stop        int    `json:"stop"`
	Prefix      string `json:"prefix"`
	Cleanup     bool   `json:"cleanup"`
}

// Read reads the decoder of a tokenizer.json; byteLevel says whether its pre-tokenizer writes bytes as symbols.
func Read(raw json.RawMessage, byteLevel bool) (*Decoder, error) {
	list, err := component.Parts(raw, "decoders")
	if err != nil {
		return nil, err
	}
	d := &Decoder{}
	for _, one := range list {
		var f decoderFields
		if err := component.Strict(one, &f); err != nil {
			kind, _ := component.TypeOf(one)
			return nil, fmt.Errorf("%w: decoder %q: %w", component.ErrUnsupported, kind, err)
		}
		switch {
		case f.Type == "ByteLevel":
			d.level = true
		case f.Type == "Replace" && f.Pattern != nil && f.Pattern.String != nil && *f.Pattern.String != "":
			d.from, d.to = append(d.from, *f.Pattern.String), append(d.to, f.Content)
		case f.Type == "Metaspace" && f.Replacement != "":
			d.from, d.to = append(d.from, f.Replacement), append(d.to, " ")
		case f.Type == "ByteFallback":
			d.bytes = true
		case f.Type == "WordPiece":
			d.wordPiece, d.prefix, d.cleanup = true, f.Prefix, f.Cleanup
		case f.Type == "Fuse", f.Type == "Strip" && f.Stop == 0:
		default:
			return nil, fmt.Errorf("%w: decoder %q is not known", component.ErrUnsupported, f.Type)
		}
	}
	if len(list) == 0 || d.level != byteLevel {
		return nil, fmt.Errorf("%w: a decoder that does not undo the pre_tokenizer", component.ErrUnsupported)
	}
	return d, nil
}

// cleanups are the spaces that go before marks of English.
var cleanups = strings.NewReplacer(" .", ".", " ?", "?", " !", "!", " ,", ",", " ' ", "'", " n't", "n't", " 'm", "'m",
	" do not", " don't", " 's", "'s", " 've", "'ve", " 're", "'re")

// Text is what a token stands for.
func (d *Decoder) Text(token string) string {
	if b, ok := ByteOf(token); ok && d.bytes {
		return string([]byte{b})
	}
	for i, from := range d.from {
		token = strings.ReplaceAll(token, from, d.to[i])
	}
	if d.wordPiece {
		if rest, ok := strings.CutPrefix(token, d.prefix); ok {
			token = rest
		} else {
			token = " " + token
		}
		if d.cleanup {
			token = cleanups.Replace(token)
		}
	}
	return token
}
