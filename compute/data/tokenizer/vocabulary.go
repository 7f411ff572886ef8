package tokenizer

import (
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/data/tokenizer/decode"
	"github.com/starling-network/starling/compute/data/tokenizer/pattern"
)

// Vocabulary is what another file format needs to know to encode as a Tokenizer does.
type Vocabulary struct {
	Model  string   // one of ByteBPE and those after it
	Tokens []Token  // by id
	Merges []string // by rank: two tokens, with a space between; of byte-level BPE in symbols

	Pattern      string // how text is cut into words, a part a line; "" for a text that is not cut
	IgnoreMerges bool   // a word that is a token is that token, whatever the merges say
	PrefixSpace  bool   // a space is put before text, that starts with none where the model is byte-level BPE
	ByteFallback bool   // what is no token is written as bytes
	Start        string // the special token that the post-processor puts before a text, if there is one
}

// The kinds of Vocabulary.Model.
const (
	ByteBPE      = "byte-level BPE"
	CharacterBPE = "BPE"
	UnigramModel = "Unigram"
	WordPiece    = "WordPiece"
)

// Patterns of Vocabulary.
const (
	PatternGPT2   = pattern.SourceGPT2
	PatternLlama3 = pattern.SourceLlama3
	PatternQwen2  = pattern.SourceQwen2
	PatternDigit  = pattern.SourceDigit
)

// Token is one entry of a Vocabulary.
type Token struct {
	// of byte-level BPE in symbols, one for a byte; of an added token, its content; "" for an id that is not used
	Text  string
	Added bool // found in the text before anything else
	// Special tokens are added tokens that are left out of decoded text.
	Special bool
	// Strict is an added token with conditions on the text around it, or that takes white space from it.
	Strict  bool
	Byte    bool // written for a byte of text that is no token
	Unknown bool // written for what is no token and has no bytes
}

// Vocabulary returns the vocabulary.
func (t *Tokenizer) Vocabulary() Vocabulary {
	v := Vocabulary{
		Model:        ByteBPE,
		Tokens:       make([]Token, len(t.pieces)),
		Merges:       make([]string, len(t.merges.Merges())),
		Pattern:      [...]string{pattern.Whole: "", pattern.GPT2: PatternGPT2, pattern.Llama3: PatternLlama3}[t.pattern],
		IgnoreMerges: t.known != nil,
		PrefixSpace:  t.prefixSpace,
	}
	if len(t.begin) > 0 {
		v.Start = t.begin[0]
	}
	for id, piece := range t.pieces {
		v.Tokens[id].Text = toSymbols(piece)
	}
	if t.parts != nil {
		t.parts.describe(&v)
	}
	for _, a := range t.addedTokens {
		token := &v.Tokens[a.ID]
		token.Text, token.Added, token.Special, token.Strict = a.Content, true, a.Special,
			a.SingleWord || a.LStrip || a.RStrip
	}
	for rank, m := range t.merges.Merges() {
		v.Merges[rank] = v.Tokens[m.Left].Text + " " + v.Tokens[m.Right].Text
	}
	return v
}

// describe says what the parts do, as far as other formats can say it; what they cannot is a pattern that they do not
// know.
func (p *parts) describe(v *Vocabulary) {
	v.Pattern = strings.Join(slices.DeleteFunc(slices.Concat(p.normal.Names, p.cuts.Names),
		func(name string) bool { return name == "" }), "\n")
	v.PrefixSpace = p.normal.Prefix || p.cuts.Prefix
	if p.model == nil {
		return
	}
	v.Model = p.kind
	for token, id := range p.lexicon.ids {
		t := &v.Tokens[id]
		t.Text = token
		_, t.Byte = decode.ByteOf(token)
		t.Unknown = p.lexicon.hasUnk && p.lexicon.unk == id
	}
	v.ByteFallback = p.lexicon.fallback
	if c, ok := p.model.(*characterBPE); ok {
		v.IgnoreMerges = c.whole
	}
}

// ID returns the id of the added token with the given content.
func (v *Vocabulary) ID(content string) (uint32, bool) {
	id := slices.IndexFunc(v.Tokens, func(t Token) bool { return t.Added && t.Text == content })
	return uint32(max(id, 0)), id >= 0
}
