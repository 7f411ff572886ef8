package source

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

// llmc is a file as llm.c writes it.
func llmc(kind, version uint32, width int, ids ...uint32) []byte {
	out := make([]byte, llmcHeader)
	for i, v := range []uint32{kind, version, uint32(len(ids))} {
		binary.LittleEndian.PutUint32(out[4*i:], v)
	}
	for _, id := range ids {
		out = append(out, binary.LittleEndian.AppendUint32(nil, id)[:width]...)
	}
	return out
}

// numbers are the ids in a file.
func numbers(f File) (ids []uint32, err error) {
	err = f.Tokens(func(width int, raw []byte) error {
		for ; len(raw) > 0; raw = raw[width:] {
			ids = append(ids, binary.LittleEndian.Uint32(append(slices.Clone(raw[:width]), 0, 0, 0)))
		}
		return nil
	})
	return ids, err
}

func TestTokenFiles(t *testing.T) {
	for name, c := range map[string]struct {
		s    File
		want []uint32
		err  error
	}{
		"gpt-2":   {File{Format: LLMC, Data: llmc(llmcGPT2, 1, 2, 5, 65535)}, []uint32{5, 65535}, nil},
		"llama 3": {File{Format: LLMC, Data: llmc(llmcLlama3, 7, 4, 5, 128000)}, []uint32{5, 128000}, nil},
		"packed": {File{Format: LLMC, Name: "x.bin.gz", Data: gzipped(string(llmc(llmcGPT2, 1, 2, 7)))},
			[]uint32{7}, nil},
		"nanoGPT":         {File{Format: NanoGPT, Data: []byte{1, 0, 0, 2}}, []uint32{1, 512}, nil},
		"nothing":         {File{Format: NanoGPT}, nil, nil},
		"half an id":      {File{Format: NanoGPT, Data: []byte{1, 0, 0}}, nil, ErrTokens},
		"no header":       {File{Format: LLMC, Data: []byte("short")}, nil, ErrTokens},
		"another file":    {File{Format: LLMC, Data: llmc(1, 1, 2)}, nil, ErrTokens},
		"another version": {File{Format: LLMC, Data: llmc(llmcGPT2, 7, 2)}, nil, ErrTokens},
		"cut off":         {File{Format: LLMC, Data: llmc(llmcGPT2, 1, 2, 1, 2, 3)[:llmcHeader+4]}, nil, ErrTokens},
	} {
		got, err := numbers(c.s)
		if !errors.Is(err, c.err) || err == nil && !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, err, c.want, c.err)
		}
	}
	if _, err := all(File{Format: LLMC}); !errors.Is(err, ErrNoText) {
		t.Errorf("the text of tokens: %v", err)
	}
}

func FuzzTokens(f *testing.F) {
	f.Add(llmc(llmcGPT2, 1, 2, 5, 6), true)
	f.Add(llmc(llmcLlama3, 7, 4, 5), true)
	f.Add([]byte{1, 2}, false)
	f.Fuzz(func(t *testing.T, raw []byte, header bool) {
		s := File{Format: NanoGPT, Data: raw}
		if header {
			s.Format = LLMC
		}
		ids, err := numbers(s)
		if p := NewProfile(s, 1); err == nil != (len(p.Faults) == 0) || p.Tokens != len(ids) {
			t.Fatalf("%d tokens, %v; the profile has %+v", len(ids), err, p)
		}
	})
}
