// Package data turns documents into the batches of a training run. A batch has an address (seed, round, unit, step), and
// whoever holds the corpus computes the same batch from it: a worker, its verifier, the referee. Nothing is shuffled in
// memory and no position is kept.
//
// It does no I/O: the caller reads files and moves shards. It knows nothing of programs; a batch is plain token ids.
package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// The formats of a Source.
const (
	Text  = "text"  // the whole of Data is one document, of any bytes
	JSONL = "jsonl" // one JSON object a line, of which one field is the document
)

// DefaultField is the field of a JSONL source that names none.
const DefaultField = "text"

// Source is one input file.
type Source struct {
	Format string // Text or JSONL
	Field  string // for JSONL; "" is DefaultField
	Name   string // for errors: the path as the user gave it
	Data   []byte
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
	ErrFormat = errors.New("unknown format: use text or jsonl")
	ErrLine   = errors.New("not a JSON object: every line must be one, such as {\"text\": \"...\"}")
	ErrField  = errors.New("no such text")
)

// Documents returns the documents of a source that are not empty, in order. Errors are of type *SourceError and wrap
// ErrFormat, ErrLine or ErrField.
func Documents(s Source) ([]string, error) {
	switch s.Format {
	case Text:
		if len(s.Data) == 0 {
			return nil, nil
		}
		return []string{string(s.Data)}, nil
	case JSONL:
		return jsonLines(s)
	}
	return nil, &SourceError{Name: s.Name, Err: fmt.Errorf("%q: %w", s.Format, ErrFormat)}
}

func jsonLines(s Source) ([]string, error) {
	field := s.Field
	if field == "" {
		field = DefaultField
	}
	var docs []string
	line := 0
	for raw := range bytes.Lines(bytes.TrimPrefix(s.Data, []byte("\ufeff"))) {
		line++
		if raw = bytes.TrimSpace(raw); len(raw) == 0 {
			continue
		}
		doc, err := textField(raw, field)
		if err != nil {
			return nil, &SourceError{Name: s.Name, Line: line, Err: err}
		}
		if doc != "" {
			docs = append(docs, doc)
		}
	}
	return docs, nil
}

// textField returns the string in a field of a JSON object.
func textField(object []byte, field string) (string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return "", fmt.Errorf("%w (%w)", ErrLine, err)
	}
	if fields == nil { // null
		return "", ErrLine
	}
	raw, ok := fields[field]
	if !ok {
		return "", fmt.Errorf("%w: the object has no field %q", ErrField, field)
	}
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil || text == nil {
		return "", fmt.Errorf("%w: the field %q is not a string", ErrField, field)
	}
	return *text, nil
}
