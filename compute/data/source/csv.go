package source

import (
	"bufio"
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
func header(text *bufio.Reader) (*csv.Reader, []string, error) {
	skipMark(text)
	r := csv.NewReader(text)
	r.ReuseRecord = true
	names, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil, nil
	}
	return r, slices.Clone(names), err
}

// csvRows passes on the value in a column of every row but the first, and how many bytes the row has. Of a file without
// rows there is none. It ends when visit returns false.
func csvRows(text *bufio.Reader, file, field string, visit func(value string, bytes int) bool) error {
	fail := func(line int, err error) error { return &Error{Name: file, Line: line, Err: err} }
	broken := func(err error) error {
		at := (*csv.ParseError)(nil)
		if !errors.As(err, &at) {
			return fail(0, err)
		}
		return fail(at.Line, fmt.Errorf("%w (%w)", ErrCSV, at.Err))
	}
	r, names, err := header(text)
	if err != nil {
		return broken(err)
	}
	if r == nil {
		return nil
	}
	column := slices.Index(names, field)
	if column < 0 {
		return fail(1, fmt.Errorf("%w: the first row names no column %q", ErrField, field))
	}
	for before := r.InputOffset(); ; {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(err)
		}
		after := r.InputOffset()
		if !visit(strings.Clone(row[column]), int(after-before)) { // of the row, which is one string
			return nil
		}
		before = after
	}
}

// csvColumns are the names in the first row; none if it cannot be read.
func csvColumns(f File) []string {
	text, err := f.unpacked()
	if err != nil {
		return nil
	}
	defer text.Close()
	_, names, _ := header(bufio.NewReader(text))
	return names
}

// skipMark skips the byte order mark that a text may begin with, and returns its length.
func skipMark(r *bufio.Reader) int {
	const mark = "\ufeff"
	if start, _ := r.Peek(len(mark)); string(start) != mark {
		return 0
	}
	n, _ := r.Discard(len(mark))
	return n
}
