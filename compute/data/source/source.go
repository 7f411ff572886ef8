// Package source reads the documents in the files that people have: text, JSONL, CSV and Parquet, packed or not, and
// files of tokens. It says what is wrong with them, and in which line.
//
// It opens no files: the caller does. It makes no tokens of documents; package data does.
package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// The formats of a File of text. Files whose names end in .gz or .zst are unpacked, but for Parquet, which packs by
// itself.
const (
	Text    = "text"    // the whole of Data is one document, of any bytes
	JSONL   = "jsonl"   // one JSON object a line, of which one field is the document
	CSV     = "csv"     // comma-separated values, names in the first row, of which one column has a document a row
	Parquet = "parquet" // one document a row, in a column of strings; rows without a value are left out
)

// DefaultField is the field or column of a source that names none.
const DefaultField = "text"

// File is one input file.
type File struct {
	Format string // Text, JSONL, CSV, Parquet, LLMC or NanoGPT
	Field  string // of a JSONL object, or column of CSV or Parquet; "" is DefaultField
	Name   string // the path as the user gave it: for errors, and for its ending
	Data   []byte // not changed by anybody

	// Open gives the bytes whenever they are needed, so that files need not be in memory; nil: they are Data.
	Open func() (io.ReadCloser, error)

	// how often its tokens are in the corpus: 0.5 is the first half, 2 is twice; 0: once
	Weight float64

	// Examples makes the documents of a JSONL object in place of those of Field; nil: Field is one.
	Examples func(object map[string]json.RawMessage) ([]Document, error)
}

// Error says where a source is wrong.
type Error struct {
	Name string
	Line int // from 1; 0 for the file as a whole
	Err  error
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("data: %s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("data: %s:%d: %v", e.Name, e.Line, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Errors of sources.
var (
	ErrFormat = errors.New("unknown format: use text, jsonl, csv, parquet, llmc-bin or nanogpt-bin")
	ErrLine   = errors.New("not a JSON object: every line must be one, such as {\"text\": \"...\"}")
	ErrField  = errors.New("no such text")
)

// Documents gives the documents of a file that are not empty, in order. size, cut and the errors are those of Blocks.
func (f File) Documents(size int, cut func(text string) int) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		for b, err := range f.Blocks(size, cut) {
			var docs []Document
			if err == nil {
				docs, err = b.Documents()
			}
			if err != nil {
				yield(Document{}, err)
				return
			}
			for _, d := range docs {
				if !yield(d, nil) {
					return
				}
			}
		}
	}
}

// jsonLines are the documents of the lines of a file from line number first on.
func jsonLines(f *File, lines []byte, first int) (docs []Document, err error) {
	err = f.objects(lines, first, func(fields map[string]json.RawMessage) error {
		own, err := f.ofObject(fields)
		for _, doc := range own {
			if doc.Text != "" {
				docs = append(docs, doc)
			}
		}
		return err
	})
	return docs, err
}

// EachObject gives the objects of a JSONL file, whatever they hold, until one is refused. The error is a *Error.
func (f File) EachObject(take func(object map[string]json.RawMessage) error) error {
	for b, err := range f.Blocks(readAhead, nil) {
		if err == nil {
			err = f.objects(b.lines, b.first, take)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// objects gives those in lines of the file from line number first on.
func (f *File) objects(lines []byte, first int, take func(object map[string]json.RawMessage) error) error {
	for line, raw := range eachLine(lines) {
		fields, err := object(raw)
		if err == nil {
			err = take(fields)
		}
		if err != nil {
			return &Error{Name: f.Name, Line: first - 1 + line, Err: err}
		}
	}
	return nil
}

// ofObject are the documents of a JSON object.
func (f File) ofObject(fields map[string]json.RawMessage) ([]Document, error) {
	if f.Examples != nil {
		return f.Examples(fields)
	}
	text, err := StringOf(fields, f.Field)
	if err != nil {
		return nil, err
	}
	return []Document{{Text: text}}, nil
}

// eachLine gives the lines of a text that are not empty, without the space around them, by their numbers from 1.
func eachLine(text []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		line := 0
		for raw := range bytes.Lines(text) {
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

// Name is a value of a JSON object that names a thing, such as a class: a text, or a number as it is written. It is ""
// if the value is neither.
func Name(raw json.RawMessage) string {
	var text string
	var number json.Number
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return text
	}
	if json.Unmarshal(raw, &number) == nil {
		return number.String()
	}
	return ""
}

// TextOf is the text in a field of a JSON object; nil if the field holds something else, which raw is.
func TextOf(object map[string]json.RawMessage, field string) (text *string, raw json.RawMessage, err error) {
	raw, ok := object[field]
	if !ok {
		return nil, nil, fmt.Errorf("%w: the object has no field %q", ErrField, field)
	}
	if json.Unmarshal(raw, &text) != nil {
		text = nil
	}
	return text, raw, nil
}

// StringOf is the text in a field of a JSON object. The error wraps ErrField.
func StringOf(object map[string]json.RawMessage, field string) (string, error) {
	text, _, err := TextOf(object, field)
	if err == nil && text == nil {
		err = fmt.Errorf("%w: the field %q is not a string", ErrField, field)
	}
	if err != nil {
		return "", err
	}
	return *text, nil
}
