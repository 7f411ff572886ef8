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
	r, names, err := header(text)
	if err != nil {
		return broken(file, err)
	}
	if r == nil {
		return nil
	}
	column := slices.Index(names, field)
	if column < 0 {
		return &Error{Name: file, Line: 1, Err: fmt.Errorf("%w: the first row names no column %q", ErrField, field)}
	}
	for before := r.InputOffset(); ; {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(file, err)
		}
		after := r.InputOffset()
		if !visit(strings.Clone(row[column]), int(after-before)) { // of the row, which is one string
			return nil
		}
		before = after
	}
}

// broken is the error of a CSV reader, with its line.
func broken(file string, err error) error {
	at := (*csv.ParseError)(nil)
	if !errors.As(err, &at) {
		return &Error{Name: file, Err: err}
	}
	return &Error{Name: file, Line: at.Line, Err: fmt.Errorf("%w (%w)", ErrCSV, at.Err)}
}

// ErrRow is returned for a row of CSV with more bytes than there may be: a quotation mark without its partner makes one
// of the rest of a file.
var ErrRow = errors.New("a row has too many bytes: is a quotation mark left open?")

// record reads at most left bytes.
type record struct {
	of   io.Reader
	left int
}

// Read implements io.Reader.
func (r *record) Read(to []byte) (int, error) {
	if r.left <= 0 {
		return 0, ErrRow
	}
	n, err := r.of.Read(to[:min(len(to), r.left)])
	r.left -= n
	return n, err
}

// EachRow gives the names of the columns of a CSV file to begin, then the values of every other row to take, which may
// keep the strings and not the slice, until one is refused. An empty file has no names. Rows have at most about most
// bytes. The error is a *Error.
func (f File) EachRow(most int, begin, take func(values []string) error) error {
	text, err := f.unpacked()
	if err != nil {
		return &Error{Name: f.Name, Err: err}
	}
	defer text.Close()
	limit := &record{text, most}
	r, names, err := header(bufio.NewReader(limit))
	if err != nil {
		return broken(f.Name, err)
	}
	if r == nil {
		return nil
	}
	if err := begin(names); err != nil {
		return &Error{Name: f.Name, Line: 1, Err: err}
	}
	for {
		limit.left = most
		values, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(f.Name, err)
		}
		line, _ := r.FieldPos(0)
		if err := take(values); err != nil {
			return &Error{Name: f.Name, Line: line, Err: err}
		}
	}
}

// EachTwo is EachRow that gives take the values in two columns, which it may keep.
func (f File) EachTwo(most int, first, second string, take func(a, b string) error) error {
	var at [2]int
	return f.EachRow(most, func(names []string) error {
		for i, name := range []string{first, second} {
			if at[i] = slices.Index(names, name); at[i] < 0 {
				return fmt.Errorf("%w: the first row names no column %q", ErrField, name)
			}
		}
		return nil
	}, func(values []string) error {
		return take(strings.Clone(values[at[0]]), strings.Clone(values[at[1]])) // of the row, which is one string
	})
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
