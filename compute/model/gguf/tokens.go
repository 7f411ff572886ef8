package gguf

import (
	"fmt"
	"strings"

	"github.com/starling-network/starling/compute/data/tokenizer"
)

// addTokenizer adds the tokenizer, with as many tokens as the model has.
func (m *Model) addTokenizer(d *metadata, c sizes) error {
	v := m.Tokenizer.Vocabulary()
	if len(v.Tokens) > c.Vocab {
		return fmt.Errorf("%w: it has %d tokens, the model %d", ErrTokenizer, len(v.Tokens), c.Vocab)
	}
	tokens, types := make([]string, c.Vocab), make([]int32, c.Vocab)
	for id := range tokens {
		tokens[id], types[id] = fmt.Sprintf("[PAD%d]", id), tokenUnused
		if id >= len(v.Tokens) || v.Tokens[id].Text == "" {
			continue
		}
		token := v.Tokens[id]
		if token.Strict {
			return fmt.Errorf("%w: the added token %q has single_word, lstrip or rstrip", ErrTokenizer, token.Text)
		}
		tokens[id], types[id] = token.Text, typeOf(token)
	}
	var err error
	switch v.Model {
	case tokenizer.ByteBPE:
		err = addByteBPE(d, &v)
	case tokenizer.CharacterBPE:
		err = addPieces(d, &v, c.Vocab)
	default:
		err = fmt.Errorf("%w: it is %s", ErrTokenizer, v.Model)
	}
	if err != nil {
		return err
	}
	d.add("tokenizer.ggml.tokens", tokens)
	d.add("tokenizer.ggml.token_type", types)
	m.addEnds(d, c, v.ID, v.Start)
	return nil
}

func typeOf(t tokenizer.Token) int32 {
	switch {
	case t.Unknown:
		return tokenUnknown
	case t.Special:
		return tokenControl
	case t.Added:
		return tokenUserDefined
	case t.Byte:
		return tokenByte
	}
	return tokenNormal
}

// patterns are llama.cpp's names of how text is cut. Without merges, where words end makes no difference.
var patterns = map[string]string{
	tokenizer.PatternGPT2:                                 "gpt-2",
	tokenizer.PatternLlama3:                               "dbrx", // with merges
	tokenizer.PatternDigit + "\n" + tokenizer.PatternGPT2: "smollm",
	tokenizer.PatternQwen2:                                "qwen2",
}

// addByteBPE adds byte-level BPE.
func addByteBPE(d *metadata, v *tokenizer.Vocabulary) error {
	pre := patterns[v.Pattern]
	switch {
	case v.PrefixSpace:
		return fmt.Errorf("%w: it puts a space before the text", ErrTokenizer)
	case len(v.Merges) == 0 && !v.IgnoreMerges:
		pre = "gpt-2"
	case v.Pattern == tokenizer.PatternLlama3 && v.IgnoreMerges:
		pre = "llama-bpe"
	case pre == "" || v.IgnoreMerges:
		return fmt.Errorf("%w: pattern %.80q with ignore_merges %t", ErrTokenizer, v.Pattern, v.IgnoreMerges)
	}
	d.add("tokenizer.ggml.model", "gpt2")
	d.add("tokenizer.ggml.pre", pre)
	d.add("tokenizer.ggml.merges", v.Merges)
	return nil
}

// addPieces adds BPE over characters as a SentencePiece vocabulary: there the piece with the highest score is made
// first, so that the score of a piece is its first merge. It must be the only way in which the merges go: those to one
// piece follow each other, and each pair that makes a piece is one of them.
func addPieces(d *metadata, v *tokenizer.Vocabulary, vocab int) error {
	if !v.ByteFallback || v.Pattern != "" || v.IgnoreMerges {
		return fmt.Errorf("%w: characters without bytes, or cut into words", ErrTokenizer)
	}
	ids, scores := map[string]int{}, make([]float32, vocab)
	for id, t := range v.Tokens {
		ids[t.Text] = id
	}
	known, made, last := map[string]bool{}, map[string]bool{}, ""
	for rank, m := range v.Merges {
		left, right, _ := strings.Cut(m, " ")
		piece := left + right
		if piece != last && made[piece] {
			return fmt.Errorf("%w: the merges to %q are not in a row", ErrTokenizer, piece)
		}
		if !made[piece] {
			scores[ids[piece]] = -float32(rank)
		}
		known[m], made[piece], last = true, true, piece
	}
	for _, t := range v.Tokens {
		for i := range t.Text {
			left, right := t.Text[:i], t.Text[i:]
			_, okLeft := ids[left]
			_, okRight := ids[right]
			if okLeft && okRight && !t.Added && !t.Byte && !known[left+" "+right] {
				return fmt.Errorf("%w: no merge makes %q of %q and %q", ErrTokenizer, t.Text, left, right)
			}
		}
	}
	d.add("tokenizer.ggml.model", "llama")
	d.add("tokenizer.ggml.pre", "default")
	d.add("tokenizer.ggml.scores", scores)
	d.add("tokenizer.ggml.add_space_prefix", v.PrefixSpace)
	return nil
}
