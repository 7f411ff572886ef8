package tokenizer

import "slices"

// Vocabulary is what another file format needs to know to encode as a Tokenizer does.
type Vocabulary struct {
	Tokens []Token  // by id
	Merges []string // by rank: two tokens in symbols, with a space between

	Pattern      string // "gpt2", "llama3", or "" for a text that is not cut into words
	IgnoreMerges bool   // a word that is a token is that token, whatever the merges say
	PrefixSpace  bool   // a space is put before text that starts with none
	Start        string // the special token that the post-processor puts before a text, if there is one
}

// Token is one entry of a Vocabulary.
type Token struct {
	Text  string // in symbols, one for a byte; of an added token, its content; "" for an id that is not used
	Added bool   // found in the text before anything else
	// Special tokens are added tokens that are left out of decoded text.
	Special bool
	// Strict is an added token with conditions on the text around it, or that takes white space from it.
	Strict bool
}

// Vocabulary returns the vocabulary.
func (t *Tokenizer) Vocabulary() Vocabulary {
	v := Vocabulary{
		Tokens:       make([]Token, len(t.pieces)),
		Merges:       make([]string, len(t.merges)),
		Pattern:      [...]string{whole: "", gpt2: "gpt2", llama3: "llama3"}[t.pattern],
		IgnoreMerges: t.known != nil,
		PrefixSpace:  t.prefixSpace,
	}
	if len(t.begin) > 0 {
		v.Start = t.begin[0]
	}
	for id, piece := range t.pieces {
		v.Tokens[id].Text = toSymbols(piece)
	}
	for _, a := range t.addedTokens {
		v.Tokens[a.ID] = Token{Text: a.Content, Added: true, Special: a.Special, Strict: a.SingleWord || a.LStrip || a.RStrip}
	}
	for rank, m := range t.merges {
		v.Merges[rank] = v.Tokens[m.left].Text + " " + v.Tokens[m.right].Text
	}
	return v
}

// ID returns the id of the added token with the given content.
func (v *Vocabulary) ID(content string) (uint32, bool) {
	id := slices.IndexFunc(v.Tokens, func(t Token) bool { return t.Added && t.Text == content })
	return uint32(max(id, 0)), id >= 0
}
