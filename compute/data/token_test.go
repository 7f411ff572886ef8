package data

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
)

// A job that names the tokens of its data in place of the data has the same corpus, bit for bit.
func TestTokensStandForTheirText(t *testing.T) {
	texts := []source.File{{Format: source.JSONL, Data: []byte("{\"text\":\"one two\"}\n{\"text\":\"two three\"}\n")},
		{Format: source.Text, Data: []byte("four")}}
	bpe, err := tokenizer.TrainBPE(slices.Values([]string{"one two", "two three", "four"}), 270)
	if err != nil {
		t.Fatal(err)
	}
	for _, tok := range []*tokenizer.Tokenizer{tokenizer.Bytes(), bpe} {
		want, err := Build(texts, tok, 0.3)
		if err != nil {
			t.Fatal(err)
		}
		file := slices.Concat(source.Header(want.all.width, want.all.Len()), want.all.raw)
		got, err := Build([]source.File{{Format: source.LLMC, Data: file}}, tok, 0.3)
		if err != nil || got.Manifest(16).Digest() != want.Manifest(16).Digest() {
			t.Errorf("%v; %d tokens, want %d", err, got.all.Len(), want.all.Len())
		}
		half, err := Build([]source.File{{Format: source.NanoGPT, Data: file[1024:]}}, tok, 0.3)
		if err != nil || half.Manifest(16).Digest() != want.Manifest(16).Digest() {
			t.Errorf("without a header: %v", err)
		}
	}
}

func TestTokensOfAnotherTokenizer(t *testing.T) {
	_, err := Build([]source.File{{Format: source.NanoGPT, Name: "other.bin", Data: []byte{1, 0, 0, 1}}},
		tokenizer.Bytes(), 0)
	if !errors.Is(err, ErrVocab) || !strings.Contains(err.Error(), "other.bin: a token") ||
		!strings.Contains(err.Error(), "token 1 is 256") {
		t.Errorf("a token of another tokenizer: %v", err)
	}
}
