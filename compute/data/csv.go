package data

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrCSV is returned for a file that is no CSV as RFC 4180 has it: a quote that is not closed, or a row that has not as
// many values as the first.
var ErrCSV = errors.New("not comma-separated values with a row of names first")

// header reads the names of the columns, from the first row.
func header(text []byte) (*csv.Reader, []string, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	r.ReuseRecord = true
	names, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil, nil
	}
	return r, slices.Clone(names), err
}

// csvRows returns one document for every row but the first. Of a file without rows there is none.
func csvRows(s Source) (docs []string, _ error) {
	fail := func(line int, err error) ([]string, error) {
		return nil, &SourceError{Name: s.Name, Line: line, Err: err}
	}
	broken := func(err error) ([]string, error) {
		at, line := (*csv.ParseError)(nil), 0
		if errors.As(err, &at) {
			line, err = at.Line, at.Err
		}
		return fail(line, fmt.Errorf("%w (%w)", ErrCSV, err))
	}
	r, names, err := header(s.Data)
	if err != nil {
		return broken(err)
	}
	if r == nil {
		return nil, nil
	}
	column := slices.Index(names, s.Field)
	if column < 0 {
		return fail(1, fmt.Errorf("%w: the first row names no column %q", ErrField, s.Field))
	}
	for {
		row, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return docs, nil
		case err != nil:
			return broken(err)
		case row[column] != "":
			docs = append(docs, strings.Clone(row[column])) // of the row, which is one string
		}
	}
}

// csvColumns are the names in the first row; none if it cannot be read.
func csvColumns(s Source) []string {
	text, err := unpacked(s, MaxUnpacked)
	if err != nil {
		return nil
	}
	_, names, _ := header(text)
	return names
}
