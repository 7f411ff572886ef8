package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The formats of a Source that holds token ids, little-endian, of text that was tokenized before. Nothing is put
// between them.
const (
	// as llm.c reads: a header of 1024 bytes, then ids of 2 bytes (that of GPT-2) or of 4 (that of Llama 3)
	LLMC    = "llmc-bin"
	NanoGPT = "nanogpt-bin" // as nanoGPT writes: ids of 2 bytes and nothing else
)

// Tokenized reports whether sources of a format hold token ids.
func Tokenized(format string) bool { return format == LLMC || format == NanoGPT }

// The header of LLMC is 256 numbers of 4 bytes, of which three say something: which file it is, its version, and how
// many ids follow. Source: llmc/dataloader.h and dev/data/data_common.py of github.com/karpathy/llm.c.
const (
	llmcHeader = 256 * 4
	llmcGPT2   = 20240520 // version 1, ids of 2 bytes
	llmcLlama3 = 20240801 // version 7, ids of 4 bytes
)

// MaxFileTokens is how many tokens a file of LLMC can hold: its header counts them in an int32.
const MaxFileTokens = math.MaxInt32

// What is wrong with a source of tokens.
var (
	// ErrTokens is returned for a file that is none of its format.
	ErrTokens = errors.New("not a file of tokens")
	// ErrVocab is returned for a token that the tokenizer does not have.
	ErrVocab = errors.New("a token that the tokenizer does not have: name the tokenizer that the file was made with")
	// ErrNoText is returned by Documents for a source of tokens.
	ErrNoText = errors.New("it holds tokens, not text")
)

// tokens returns the ids in a source, as they are in the file, packed or not.
func tokens(s Source) (Tokens, error) {
	if err := s.load(); err != nil {
		return Tokens{}, err
	}
	raw, err := unpacked(s, MaxUnpacked)
	if err != nil {
		return Tokens{}, err
	}
	if s.Format == NanoGPT {
		if len(raw)%2 != 0 {
			return Tokens{}, fmt.Errorf("%w: %d bytes are no ids of 2 bytes", ErrTokens, len(raw))
		}
		return Tokens{2, raw}, nil
	}
	if len(raw) < llmcHeader {
		return Tokens{}, fmt.Errorf("%w: %d bytes, and the header alone has %d", ErrTokens, len(raw), llmcHeader)
	}
	at := func(i int) uint32 { return binary.LittleEndian.Uint32(raw[4*i:]) }
	t := Tokens{raw: raw[llmcHeader:]}
	switch kind, version := at(0), at(1); {
	case kind == llmcGPT2 && version == 1:
		t.width = 2
	case kind == llmcLlama3 && version == 7:
		t.width = 4
	default:
		return Tokens{}, fmt.Errorf("%w: it begins with %d and version %d, wanted %d and 1 or %d and 7", ErrTokens, kind,
			version, llmcGPT2, llmcLlama3)
	}
	if want := uint64(at(2)) * uint64(t.width); uint64(len(t.raw)) != want {
		return Tokens{}, fmt.Errorf("%w: %d tokens of %d bytes announced, and %d bytes follow: is it cut off?", ErrTokens,
			at(2), t.width, len(t.raw))
	}
	return t, nil
}

// within reports the first token that is not of a vocabulary.
func (t Tokens) within(vocab uint32) error {
	for i := range t.Len() {
		if id := t.At(i); id >= vocab {
			return fmt.Errorf("%w: token %d is %d, and the ids are below %d", ErrVocab, i, id, vocab)
		}
	}
	return nil
}

// join appends the tokens of a file, whose ids fit.
func (t Tokens) join(more Tokens) Tokens {
	if t.width == more.width {
		t.raw = append(t.raw, more.raw...)
		return t
	}
	for i := range more.Len() {
		t = t.append([]uint32{more.At(i)})
	}
	return t
}

// Write writes the corpus as a file of LLMC: with the same tokenizer, a job that names it in place of the text has the
// same corpus. It returns how many bytes these are. The error is ErrTooLarge for more than MaxFileTokens, or that of w.
func (c *Corpus) Write(w io.Writer) (int, error) {
	n := c.all.Len()
	if n > MaxFileTokens {
		return 0, fmt.Errorf("%w (%d tokens in one file)", ErrTooLarge, MaxFileTokens)
	}
	kind, version := uint32(llmcGPT2), uint32(1)
	if c.all.width == 4 {
		kind, version = llmcLlama3, 7
	}
	header := make([]byte, llmcHeader)
	for i, v := range []uint32{kind, version, uint32(n)} {
		binary.LittleEndian.PutUint32(header[4*i:], v)
	}
	if _, err := w.Write(header); err != nil {
		return 0, err
	}
	_, err := w.Write(c.all.raw)
	return llmcHeader + len(c.all.raw), err
}
