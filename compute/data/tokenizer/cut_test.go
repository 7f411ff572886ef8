package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer/pattern"
)

// cutters are tokenizers whose texts can be divided.
func cutters(t testing.TB) map[string]*Tokenizer {
	trained, err := TrainBPE(slices.Values([]string{strings.Repeat("the bird sings 1234 don't\n\n", 3) + "a  b. c"}), 300)
	if err != nil {
		t.Fatal(err)
	}
	llama, spaced := *trained, *trained
	llama.pattern, spaced.prefixSpace = pattern.Llama3, true
	return map[string]*Tokenizer{"bytes": Bytes(), "gpt-2": trained, "llama 3": &llama, "space before": &spaced}
}

// divided encodes a text whose first n bytes are all that is known when it is cut.
func divided(t *Tokenizer, text string, n int) (ids []uint32, at int) {
	e := NewEncoder(t)
	keep := func(part []uint32) { ids = append(ids, part...) }
	if at = Cuts(t)(text[:n]); at == 0 {
		e.EncodeText(text, true, keep)
		return ids, 0
	}
	e.EncodeText(text[:at], true, keep)
	e.EncodeText(text[at:], false, keep)
	return ids, at
}

var cutParts = []string{"a", "the", " ", "  ", "\n", "\r\n", "\n\n", " \n", "12", "1234", ".", "...", "'s",
	"'", "don't", "é", "中", "\u00a0", "\u2028", "\t", "\xff", "\xe4\xb8", EndOfText, "\U0001f600", "<", "word "}

// A text that is divided where Cut says has the tokens of the whole, wherever what is known of it ends.
func TestCut(t *testing.T) {
	dice := rand.New(rand.NewPCG(7, 7))
	for name, tok := range cutters(t) {
		cuts := 0
		for range 3000 {
			var b strings.Builder
			for range 2 + dice.IntN(14) {
				b.WriteString(cutParts[dice.IntN(len(cutParts))])
			}
			text := b.String()
			n := 1 + dice.IntN(len(text))
			got, at := divided(tok, text, n)
			if want := tok.EncodeText(text); !slices.Equal(got, want) {
				t.Fatalf("%s: %q of which %d bytes were known, cut at %d: %v, want %v", name, text, n, at, got, want)
			}
			if at > 0 {
				cuts++
			}
		}
		if cuts < 500 {
			t.Errorf("%s: only %d texts were cut", name, cuts)
		}
	}
}

// A tokenizer with a token that takes white space, or has some, has no cuts.
func TestNoCut(t *testing.T) {
	for _, a := range []addedToken{{ID: 299, Content: "<mask>", LStrip: true}, {ID: 299, Content: "<mask>", RStrip: true},
		{ID: 299, Content: "mask", SingleWord: true}, {ID: 299, Content: "two words"}} {
		tok := *cutters(t)["gpt-2"]
		tok.addedTokens = append(slices.Clone(tok.addedTokens), a)
		if Cuts(&tok) != nil {
			t.Errorf("%+v: there are cuts", a)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("the bird 123\n\nsings", 15)
	all := cutters(f)
	f.Fuzz(func(t *testing.T, text string, n int) {
		if text == "" {
			return
		}
		n = 1 + int(uint(n)%uint(len(text)))
		for name, tok := range all {
			if got, at := divided(tok, text, n); !slices.Equal(got, tok.EncodeText(text)) {
				t.Fatalf("%s: cut at %d", name, at)
			}
		}
	})
}
