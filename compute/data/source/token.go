package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The formats of a File that holds token ids, little-endian, of text that was tokenized before. Nothing is put between
// them.
const (
	// as llm.c reads: a header of 1024 bytes, then ids of 2 bytes (that of GPT-2) or of 4 (that of Llama 3)
	LLMC    = "llmc-bin"
	NanoGPT = "nanogpt-bin" // as nanoGPT writes: ids of 2 bytes and nothing else
)

// Tokenized reports whether files of a format hold token ids.
func Tokenized(format string) bool { return format == LLMC || format == NanoGPT }

// The header of LLMC is 256 numbers of 4 bytes, of which three say something: which file it is, its version, and how
// many ids follow. Source: llmc/dataloader.h and dev/data/data_common.py of github.com/karpathy/llm.c.
const (
	llmcHeader = 256 * 4
	llmcGPT2   = 20240520 // version 1, ids of 2 bytes
	llmcLlama3 = 20240801 // version 7, ids of 4 bytes
)

// MaxTokens is how many tokens a file of LLMC can hold: its header counts them in an int32.
const MaxTokens = math.MaxInt32

// Errors of files of tokens.
var (
	// ErrTokens is returned for a file that is none of its format.
	ErrTokens = errors.New("not a file of tokens")
	// ErrNoText is returned by Documents for a file of tokens.
	ErrNoText = errors.New("it holds tokens, not text")
)

// Tokens reads the ids in a file as they are there, packed or not: each has width bytes. Those that visit gets are not
// to be kept; it ends the reading with an error.
func (f File) Tokens(visit func(width int, ids []byte) error) error {
	r, err := f.unpacked()
	if err != nil {
		return err
	}
	return errors.Join(f.tokens(r, visit), r.Close())
}

func (f File) tokens(r io.Reader, visit func(width int, ids []byte) error) error {
	width, announced := 2, int64(-1)
	if f.Format == LLMC {
		var err error
		if width, announced, err = readHeader(r); err != nil {
			return err
		}
	}
	buffer, read := make([]byte, readAhead), int64(0)
	for {
		n, err := io.ReadFull(r, buffer)
		read += int64(n)
		if n -= n % width; n > 0 {
			if err := visit(width, buffer[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF { // and not what wraps it
			break
		}
		if err != nil {
			return err
		}
	}
	switch {
	case announced < 0 && read%2 != 0:
		return fmt.Errorf("%w: %d bytes are no ids of 2 bytes", ErrTokens, read)
	case announced >= 0 && read != announced*int64(width):
		return fmt.Errorf("%w: %d tokens of %d bytes announced, and %d bytes follow: is it cut off?", ErrTokens, announced,
			width, read)
	}
	return nil
}

// readHeader reads that of LLMC.
func readHeader(r io.Reader) (width int, tokens int64, err error) {
	raw := make([]byte, llmcHeader)
	n, err := io.ReadFull(r, raw)
	if err == io.EOF || err == io.ErrUnexpectedEOF { // and not what wraps it
		err = fmt.Errorf("%w: %d bytes, and the header alone has %d", ErrTokens, n, llmcHeader)
	}
	if err != nil {
		return 0, 0, err
	}
	at := func(i int) uint32 { return binary.LittleEndian.Uint32(raw[4*i:]) }
	switch kind, version := at(0), at(1); {
	case kind == llmcGPT2 && version == 1:
		width = 2
	case kind == llmcLlama3 && version == 7:
		width = 4
	default:
		return 0, 0, fmt.Errorf("%w: it begins with %d and version %d, wanted %d and 1 or %d and 7", ErrTokens, kind,
			version, llmcGPT2, llmcLlama3)
	}
	return width, int64(at(2)), nil
}

// Header is what a file of LLMC has before n ids of width bytes.
func Header(width, n int) []byte {
	kind, version := uint32(llmcGPT2), uint32(1)
	if width == 4 {
		kind, version = llmcLlama3, 7
	}
	header := make([]byte, llmcHeader)
	for i, v := range []uint32{kind, version, uint32(n)} {
		binary.LittleEndian.PutUint32(header[4*i:], v)
	}
	return header
}
