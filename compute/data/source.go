// Package data turns documents into the batches of a training run. A batch has an address (seed, round, unit, step),
// and whoever holds the corpus computes the same batch from it: a worker, its verifier, the referee. Nothing is
// shuffled in memory and no position is kept.
//
// It does no I/O: the caller reads files and moves shards. It knows nothing of programs; a batch is plain token ids.
package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"unsafe"

	"github.com/starling-network/starling/compute/data/parquet"
)

// The formats of a Source of text. Files whose names end in .gz or .zst are unpacked, but for Parquet, which packs by
// itself.
const (
	Text    = "text"    // the whole of Data is one document, of any bytes
	JSONL   = "jsonl"   // one JSON object a line, of which one field is the document
	CSV     = "csv"     // comma-separated values, names in the first row, of which one column has a document a row
	Parquet = "parquet" // one document a row, in a column of strings; rows without a value are left out
)

// DefaultField is the field or column of a source that names none.
const DefaultField = "text"

// Source is one input file.
type Source struct {
	Format string // Text, JSONL, CSV, Parquet, LLMC or NanoGPT
	Field  string // of a JSONL object, or column of CSV or Parquet; "" is DefaultField
	Name   string // the path as the user gave it: for errors, and for its ending
	Data   []byte // not changed by anybody

	// Load gives Data whenever it is needed, so that sources need not be in memory at once; nil: Data is there.
	Load func() ([]byte, error)

	// how often its tokens are in the corpus: 0.5 is the first half, 2 is twice; 0: once
	Weight float64

	// Render makes a document of what a field of a JSONL object holds in place of a string, such as a conversation;
	// nil: nothing does.
	Render func(raw []byte) (Document, error)
}

// SourceError says where a source is wrong.
type SourceError struct {
	Name string
	Line int // from 1; 0 for the file as a whole
	Err  error
}

func (e *SourceError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("data: %s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("data: %s:%d: %v", e.Name, e.Line, e.Err)
}

func (e *SourceError) Unwrap() error { return e.Err }

// What is wrong with a source.
var (
	ErrFormat = errors.New("unknown format: use text, jsonl, csv, parquet, llmc-bin or nanogpt-bin")
	ErrLine   = errors.New("not a JSON object: every line must be one, such as {\"text\": \"...\"}")
	ErrField  = errors.New("no such text")
)

// Documents returns the documents of a source that are not empty, in order. Errors are of type *SourceError and wrap
// ErrFormat, ErrNoText, ErrLine, ErrField, ErrCSV, ErrPacked, ErrTooLarge or an error of package parquet.
func Documents(s Source) ([]string, error) {
	docs, err := documents(s)
	return texts(docs), err
}

func documents(s Source) ([]Document, error) {
	if s.Field == "" {
		s.Field = DefaultField
	}
	fail := func(err error) ([]Document, error) { return nil, &SourceError{Name: s.Name, Err: err} }
	if err := s.load(); err != nil {
		return fail(err)
	}
	switch s.Format {
	case Text, JSONL, CSV:
		text, err := unpacked(s, MaxUnpacked)
		if err != nil {
			return fail(err)
		}
		s.Data = text
	case Parquet:
		docs, err := parquet.Strings(s.Data, s.Field, MaxUnpacked)
		if err != nil {
			return fail(err)
		}
		return plain(docs), nil
	case LLMC, NanoGPT:
		return fail(ErrNoText)
	default:
		return fail(fmt.Errorf("%q: %w", s.Format, ErrFormat))
	}
	switch s.Format {
	case JSONL:
		return jsonLines(s)
	case CSV:
		rows, err := csvRows(s)
		return plain(rows), err
	}
	if len(s.Data) == 0 {
		return nil, nil
	}
	return []Document{{Text: unsafe.String(unsafe.SliceData(s.Data), len(s.Data))}}, nil // without a copy
}

// load puts what a source holds into Data.
func (s *Source) load() (err error) {
	if s.Load != nil {
		s.Data, err = s.Load()
	}
	return err
}

func jsonLines(s Source) ([]Document, error) {
	var docs []Document
	for line, raw := range eachLine(s.Data) {
		fields, err := object(raw)
		var doc Document
		if err == nil {
			doc, err = s.document(fields)
		}
		if err != nil {
			return nil, &SourceError{Name: s.Name, Line: line, Err: err}
		}
		if doc.Text != "" {
			docs = append(docs, doc)
		}
	}
	return docs, nil
}

// eachLine gives the lines of a text that are not empty, without the space around them, by their numbers from 1.
func eachLine(text []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		line := 0
		for raw := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
			line++
			if raw = bytes.TrimSpace(raw); len(raw) > 0 && !yield(line, raw) {
				return
			}
		}
	}
}

// object returns the fields of a JSON object.
func object(raw []byte) (fields map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrLine, err)
	}
	if fields == nil { // null
		return nil, ErrLine
	}
	return fields, nil
}

// document is what the field of a JSON object holds, as text.
func (s Source) document(fields map[string]json.RawMessage) (Document, error) {
	raw, ok := fields[s.Field]
	if !ok {
		return Document{}, fmt.Errorf("%w: the object has no field %q", ErrField, s.Field)
	}
	var text *string
	if err := json.Unmarshal(raw, &text); err == nil && text != nil {
		return Document{Text: *text}, nil
	}
	if s.Render == nil {
		return Document{}, fmt.Errorf("%w: the field %q is not a string", ErrField, s.Field)
	}
	out, err := s.Render(raw)
	if err != nil {
		return Document{}, fmt.Errorf("%w: the field %q is neither a string nor a conversation: %w", ErrField, s.Field, err)
	}
	return out, nil
}
