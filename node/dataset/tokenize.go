package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/tokenizer"
)

// Files that Tokenize writes.
const (
	FileTokens    = "tokens.bin"
	FileTokenizer = "tokenizer.json"
)

// Tokenized is what Tokenize wrote, and what a job says to be trained on it.
type Tokenized struct {
	Path      string `json:"path"`      // of the tokens, in the format llmc-bin
	Tokenizer string `json:"tokenizer"` // path of its tokenizer.json, or byte-level
	Tokens    int    `json:"tokens"`
	Vocab     int    `json:"vocab_size"`
	Bytes     int    `json:"bytes"` // of the file of tokens
	SHA256    string `json:"sha256"`
	Digest    string `json:"digest"` // of the stream of tokens, whatever part of it a job holds out
	Job       string `json:"job"`    // lines of a job file
}

// Errors of Tokenize.
var (
	ErrExists    = errors.New("the folder holds tokens already")
	ErrTokenizer = errors.New("the tokenizer cannot be used")
	ErrData      = errors.New("the data cannot be used")
)

// Vocabulary says by which tokenizer: that of a file, one trained on the data to a size, or, if neither is given, that
// of bytes.
type Vocabulary struct {
	File string
	Size int
}

func (v Vocabulary) tokenizer(sources []data.Source) (*tokenizer.Tokenizer, error) {
	switch {
	case v.File != "":
		raw, err := os.ReadFile(v.File)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTokenizer, err)
		}
		t, err := tokenizer.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrTokenizer, v.File, err)
		}
		return t, nil
	case v.Size > 0:
		var unread error
		t, err := tokenizer.TrainBPE(documents(sources, &unread), v.Size)
		if unread != nil {
			return nil, fmt.Errorf("%w: %w", ErrData, unread)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTokenizer, err)
		}
		return t, nil
	}
	return tokenizer.Bytes(), nil
}

// Tokenize writes the tokens of files, in the order given, into a folder, which it makes, and their tokenizer with
// them if it was trained. A job that names both files has the corpus that it would have from the source files.
// Nothing is overwritten. The error wraps ErrExists, ErrTokenizer or ErrData, or is that of the disk.
func Tokenize(ctx context.Context, files []File, v Vocabulary, dir string) (*Tokenized, error) {
	for _, name := range []string{FileTokens, FileTokenizer} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("%w: %s", ErrExists, dir), err)
		}
	}
	sources := make([]data.Source, len(files))
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if sources[i], err = f.source(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrData, err)
		}
	}
	tok, err := v.tokenizer(sources)
	if err != nil {
		return nil, err
	}
	c, err := data.Build(sources, tok, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrData, err)
	}
	t := &Tokenized{Path: filepath.Join(dir, FileTokens), Tokenizer: "byte-level", Tokens: c.Train.Len(),
		Vocab: tok.VocabSize(), Digest: c.Manifest(c.Train.Len()).Digest().String()}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	switch {
	case v.File != "":
		t.Tokenizer = v.File
	case v.Size > 0:
		t.Tokenizer = filepath.Join(dir, FileTokenizer)
		if err := os.WriteFile(t.Tokenizer, tok.JSON(), 0o644); err != nil {
			return nil, err
		}
	}
	t.Job = fmt.Sprintf("model: {tokenizer: %q}\ndatasets: [{path: %q, format: %s}]\n", filepath.ToSlash(t.Tokenizer),
		filepath.ToSlash(t.Path), data.LLMC)
	return t, t.write(c)
}

// write writes the file of tokens, which has its name once it is whole.
func (t *Tokenized) write(c *data.Corpus) (err error) {
	part := t.Path + ".part"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	sum := sha256.New()
	t.Bytes, err = c.Write(io.MultiWriter(f, sum))
	t.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(part)
		if errors.Is(err, data.ErrTooLarge) {
			err = fmt.Errorf("%w: %w", ErrData, err)
		}
		return err
	}
	return os.Rename(part, t.Path)
}
