package data

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
)

// llmc is a file as llm.c writes it.
func llmc(kind, version uint32, width int, ids ...uint32) []byte {
	out := make([]byte, llmcHeader)
	for i, v := range []uint32{kind, version, uint32(len(ids))} {
		binary.LittleEndian.PutUint32(out[4*i:], v)
	}
	return Tokens{width, out}.append(ids).raw
}

// A job that names the tokens of its data in place of the data has the same corpus, bit for bit.
func TestTokensStandForTheirText(t *testing.T) {
	texts := []Source{{Format: JSONL, Data: []byte("{\"text\":\"one two\"}\n{\"text\":\"two three\"}\n")},
		{Format: Text, Data: []byte("four")}}
	bpe, err := tokenizer.TrainBPE(slices.Values([]string{"one two", "two three", "four"}), 270)
	if err != nil {
		t.Fatal(err)
	}
	for _, tok := range []*tokenizer.Tokenizer{tokenizer.Bytes(), bpe} {
		want, err := Build(texts, tok, 0.3)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if n, err := want.Write(&b); err != nil || n != b.Len() {
			t.Fatal(n, err)
		}
		file := b.Bytes()
		got, err := Build([]Source{{Format: LLMC, Data: file}}, tok, 0.3)
		if err != nil || got.Manifest(16).Digest() != want.Manifest(16).Digest() {
			t.Errorf("%v; %d tokens, want %d", err, got.all.Len(), want.all.Len())
		}
		half, err := Build([]Source{{Format: NanoGPT, Data: file[llmcHeader:]}}, tok, 0.3)
		if err != nil || half.Manifest(16).Digest() != want.Manifest(16).Digest() {
			t.Errorf("without a header: %v", err)
		}
	}
}

func TestTokenFiles(t *testing.T) {
	for name, c := range map[string]struct {
		s    Source
		want []uint32
		err  error
	}{
		"gpt-2":   {Source{Format: LLMC, Data: llmc(llmcGPT2, 1, 2, 5, 65535)}, []uint32{5, 65535}, nil},
		"llama 3": {Source{Format: LLMC, Data: llmc(llmcLlama3, 7, 4, 5, 128000)}, []uint32{5, 128000}, nil},
		"packed": {Source{Format: LLMC, Name: "x.bin.gz", Data: gzipped(string(llmc(llmcGPT2, 1, 2, 7)))},
			[]uint32{7}, nil},
		"nanoGPT":         {Source{Format: NanoGPT, Data: []byte{1, 0, 0, 2}}, []uint32{1, 512}, nil},
		"nothing":         {Source{Format: NanoGPT}, nil, nil},
		"half an id":      {Source{Format: NanoGPT, Data: []byte{1, 0, 0}}, nil, ErrTokens},
		"no header":       {Source{Format: LLMC, Data: []byte("short")}, nil, ErrTokens},
		"another file":    {Source{Format: LLMC, Data: llmc(1, 1, 2)}, nil, ErrTokens},
		"another version": {Source{Format: LLMC, Data: llmc(llmcGPT2, 7, 2)}, nil, ErrTokens},
		"cut off":         {Source{Format: LLMC, Data: llmc(llmcGPT2, 1, 2, 1, 2, 3)[:llmcHeader+4]}, nil, ErrTokens},
	} {
		got, err := tokens(c.s)
		if !errors.Is(err, c.err) || err == nil && !slices.Equal(list(got), c.want) {
			t.Errorf("%s: %v, %v; want %v, %v", name, list(got), err, c.want, c.err)
		}
	}
	_, err := Build([]Source{{Format: NanoGPT, Name: "other.bin", Data: []byte{1, 0, 0, 1}}}, tokenizer.Bytes(), 0)
	if !errors.Is(err, ErrVocab) || !strings.Contains(err.Error(), "other.bin: a token") ||
		!strings.Contains(err.Error(), "token 1 is 256") {
		t.Errorf("a token of another tokenizer: %v", err)
	}
	if _, err := Documents(Source{Format: LLMC}); !errors.Is(err, ErrNoText) {
		t.Errorf("the text of tokens: %v", err)
	}
}

func FuzzTokens(f *testing.F) {
	f.Add(llmc(llmcGPT2, 1, 2, 5, 6), true)
	f.Add(llmc(llmcLlama3, 7, 4, 5), true)
	f.Add([]byte{1, 2}, false)
	f.Fuzz(func(t *testing.T, raw []byte, header bool) {
		s := Source{Format: NanoGPT, Data: raw}
		if header {
			s.Format = LLMC
		}
		ids, err := tokens(s)
		if p := NewProfile(s, 1); err == nil != (len(p.Faults) == 0) || p.Tokens != ids.Len() {
			t.Fatalf("%d tokens, %v; the profile has %+v", ids.Len(), err, p)
		}
		if err != nil {
			return
		}
		if c, err := Build([]Source{s}, tokenizer.Bytes(), 0); err == nil && !slices.Equal(list(c.Train), list(ids)) {
			t.Fatal("the corpus has other tokens")
		}
	})
}
