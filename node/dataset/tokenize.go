package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/node/memory"
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
	ErrFull      = errors.New("the disk has no room for the tokens")
)

// Vocabulary says by which tokenizer: that of a file, one trained on the data to a size, or, if neither is given, that
// of bytes.
type Vocabulary struct {
	File string
	Size int
}

func (v Vocabulary) tokenizer(sources []source.File) (*tokenizer.Tokenizer, error) {
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
// Nothing is overwritten, and after an error nothing is left. watch may be nil. The error wraps ErrExists,
// ErrTokenizer, ErrData or ErrFull, or is that of the disk or of watch.
func Tokenize(files []File, v Vocabulary, dir string, watch data.Watch) (*Tokenized, error) {
	defer memory.Pace(0)()
	for _, name := range []string{FileTokens, FileTokenizer} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("%w: %s", ErrExists, dir), err)
		}
	}
	sources := make([]source.File, len(files))
	for i, f := range files {
		var err error
		if sources[i], err = f.source(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrData, err)
		}
	}
	tok, err := v.tokenizer(sources)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	t := &Tokenized{Path: filepath.Join(dir, FileTokens), Tokenizer: "byte-level", Vocab: tok.VocabSize()}
	switch {
	case v.File != "":
		t.Tokenizer = v.File
	case v.Size > 0:
		t.Tokenizer = filepath.Join(dir, FileTokenizer)
	}
	t.Job = fmt.Sprintf("model: {tokenizer: %q}\ndatasets: [{path: %q, format: %s}]\n", filepath.ToSlash(t.Tokenizer),
		filepath.ToSlash(t.Path), source.LLMC)
	part := t.Path + ".part"
	err = t.write(part, sources, tok, watch)
	if err == nil && v.File == "" && v.Size > 0 {
		err = os.WriteFile(t.Tokenizer, tok.JSON(), 0o644)
	}
	if err == nil {
		err = os.Rename(part, t.Path)
	}
	if err == nil {
		return t, nil
	}
	_ = os.Remove(part)
	if v.File == "" {
		_ = os.Remove(filepath.Join(dir, FileTokenizer))
	}
	_ = os.Remove(dir) // if it is empty
	if full(err) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	return nil, err
}

// write writes the file of tokens.
func (t *Tokenized) write(part string, sources []source.File, tok *tokenizer.Tokenizer, watch data.Watch) error {
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	return errors.Join(t.fill(f, sources, tok, watch), f.Close())
}

// fill writes the tokens after the header, and then, when it is known how many they are, the header.
func (t *Tokenized) fill(f *os.File, sources []source.File, tok *tokenizer.Tokenizer, watch data.Watch) error {
	header := int64(len(source.Header(2, 0)))
	var ended error
	s, err := data.Write(f, header, sources, tok, data.Choice{}, func(p data.Progress) error {
		if watch != nil {
			ended = watch(p)
		}
		if p.Tokens > source.MaxTokens && ended == nil {
			return fmt.Errorf("%w (%d tokens in one file)", source.ErrTooLarge, source.MaxTokens)
		}
		return ended
	})
	if err != nil {
		if ended == nil && !errors.As(err, new(*fs.PathError)) { // what the files are, and not the disk
			err = fmt.Errorf("%w: %w", ErrData, err)
		}
		return err
	}
	t.Tokens, t.Bytes = int(s.Tokens), int(header+s.Bytes())
	if _, err := f.WriteAt(source.Header(s.Width, t.Tokens), 0); err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(int64(t.Bytes)), f.Sync()); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, int64(t.Bytes))); err != nil {
		return err
	}
	t.SHA256 = hex.EncodeToString(sum.Sum(nil))
	files := memory.OpenFolder(filepath.Dir(f.Name()))
	defer files.Close()
	raw, err := files.ReadFile(filepath.Base(f.Name()))
	if err != nil {
		return err
	}
	c, err := s.Corpus(raw[header:], 0, files.Rest)
	if err == nil {
		t.Digest = c.Manifest(t.Tokens).Digest().String()
	}
	return err
}
