// Package parquet reads one column of strings out of an Apache Parquet file, which may come from anybody: what it
// allocates and how long it takes are bounded by the limit that the caller gives, whatever the file says of itself.
//
// It is not a Parquet library: it has no writer, no other column types, no nested or repeated columns and no
// statistics. Pages may be PLAIN, dictionary or delta encoded, and packed with snappy, gzip, zstd or not at all, which
// is what the usual writers make of text. Format: github.com/apache/parquet-format.
package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// Errors of files.
var (
	ErrMalformed   = errors.New("not a valid parquet file")
	ErrUnsupported = errors.New("a form of parquet that is not read")
	ErrColumn      = errors.New("no such column of text")
	ErrTooLarge    = errors.New("the column is larger than the limit: split the file")
)

// Each gives the values of a top-level column in the order of the rows, a page at a time, until visit returns false.
// Rows without a value are left out. The file has size bytes. At most limit bytes of text, with 16 more for every row,
// are given, and at most limit bytes are unpacked. Errors wrap ErrMalformed, ErrUnsupported, ErrColumn or ErrTooLarge
// and say where in the file, or are those of data.
func Each(data io.ReaderAt, size int64, column string, limit int64, visit func(text string) bool) error {
	f, err := readFooter(data, size, column)
	if err != nil {
		return err
	}
	optional, err := f.find(column)
	if err != nil {
		return err
	}
	r := &reader{data: data, size: size, optional: optional, text: limit, unpacked: limit, packed: size, visit: visit}
	for i, c := range f.chunks {
		if c == nil {
			return malformed("row group %d has no column %q", i, column)
		}
		if err := r.chunk(c); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return fmt.Errorf("row group %d: %w", i, err)
		}
	}
	return nil
}

// errEnough ends the reading when no more values are wanted.
var errEnough = errors.New("no more values are wanted")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUnsupported}, args...)...)
}

// The numbers below are the enumerations of parquet.thrift.
const (
	typeByteArray = 6

	required = 0
	optional = 1

	convertedUTF8 = 0
)

const absent = -1

type footer struct {
	schema []element
	chunks []*chunk // of the one column, by row group
}

// element is a node of the schema, which is a tree in pre-order; the root comes first.
type element struct {
	name                                  string
	kind, repetition, children, converted int64
}

// chunk is one column of one row group.
type chunk struct {
	path                                []string
	kind, codec, values                 int64
	size, dataOffset, dictOffset, start int64
	elsewhere                           bool // in another file, or encrypted
}

const (
	magic     = "PAR1"
	encrypted = "PARE"
	maxSchema = 1 << 20 // elements
)

func readFooter(file io.ReaderAt, n int64, column string) (*footer, error) {
	ends := make([]byte, 3*len(magic))
	if _, err := file.ReadAt(ends[:min(n, 4)], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if n < int64(len(ends)) || string(ends[:4]) != magic {
		if n >= 4 && string(ends[:4]) == encrypted {
			return nil, unsupported("the file is encrypted")
		}
		return nil, malformed("it does not begin with %s", magic)
	}
	if _, err := file.ReadAt(ends[4:], n-8); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if string(ends[8:]) != magic {
		return nil, malformed("it does not end with %s: is it cut off?", magic)
	}
	size := int64(binary.LittleEndian.Uint32(ends[4:]))
	if size > n-12 {
		return nil, malformed("a footer of %d bytes in a file of %d", size, n)
	}
	data := make([]byte, size)
	if _, err := file.ReadAt(data, n-8-size); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	f := &footer{}
	t := &thrift{data: data}
	t.fields(func(id int64, kind byte) bool {
		switch id {
		case 2:
			return t.list(kind, func(kind byte) {
				if t.expect(len(f.schema) < maxSchema) {
					f.schema = append(f.schema, readElement(t, kind))
				}
			})
		case 4:
			return t.list(kind, func(kind byte) { f.chunks = append(f.chunks, readGroup(t, kind, column)) })
		}
		return false
	})
	if err := t.err(); err != nil {
		return nil, malformed("byte %d, in the footer: %v", n-8-size+int64(t.at), err)
	}
	return f, nil
}

func readElement(t *thrift, kind byte) element {
	e := element{kind: absent, repetition: absent, converted: absent}
	t.structure(kind, func(id int64, kind byte) bool {
		switch id {
		case 1:
			return t.int(kind, &e.kind)
		case 3:
			return t.int(kind, &e.repetition)
		case 4:
			return t.text(kind, &e.name)
		case 5:
			return t.int(kind, &e.children)
		case 6:
			return t.int(kind, &e.converted)
		}
		return false
	})
	return e
}

// readGroup returns the column of a row group, or nil.
func readGroup(t *thrift, kind byte, column string) (found *chunk) {
	t.structure(kind, func(id int64, kind byte) bool {
		if id != 1 {
			return false
		}
		return t.list(kind, func(kind byte) {
			if c := readChunk(t, kind); found == nil && len(c.path) == 1 && c.path[0] == column {
				found = &c
			}
		})
	})
	return found
}

func readChunk(t *thrift, kind byte) (c chunk) {
	t.structure(kind, func(id int64, kind byte) bool {
		switch id {
		case 1, 8, 9: // file_path, crypto_metadata, encrypted_column_metadata
			c.elsewhere = true
		case 3:
			return t.structure(kind, func(id int64, kind byte) bool { return c.readMeta(t, id, kind) })
		}
		return false
	})
	c.start = c.dataOffset
	if c.dictOffset > 0 {
		c.start = min(c.start, c.dictOffset)
	}
	return c
}

func (c *chunk) readMeta(t *thrift, id int64, kind byte) bool {
	switch id {
	case 1:
		return t.int(kind, &c.kind)
	case 3:
		return t.list(kind, func(kind byte) {
			var name string
			t.text(kind, &name)
			c.path = append(c.path, name)
		})
	case 4:
		return t.int(kind, &c.codec)
	case 5:
		return t.int(kind, &c.values)
	case 7:
		return t.int(kind, &c.size)
	case 9:
		return t.int(kind, &c.dataOffset)
	case 11:
		return t.int(kind, &c.dictOffset)
	}
	return false
}

// Columns are the names of the top-level columns that Each reads, in the order of the file. Errors wrap ErrMalformed
// or ErrUnsupported, or are those of data.
func Columns(data io.ReaderAt, size int64) (names []string, err error) {
	f, err := readFooter(data, size, "")
	if err != nil {
		return nil, err
	}
	for e := range f.leaves() {
		if e.check() == nil {
			names = append(names, e.name)
		}
	}
	return names, nil
}

// leaves are the top-level columns that hold values, and not other columns.
func (f *footer) leaves() iter.Seq[element] {
	return func(yield func(element) bool) {
		if len(f.schema) == 0 {
			return
		}
		rest := f.schema[1:]
		for n := f.schema[0].children; n > 0 && len(rest) > 0; n-- {
			e := rest[0]
			if e.children == 0 && !yield(e) {
				return
			}
			rest = rest[1:]
			for skip := e.children; skip > 0 && len(rest) > 0; skip-- {
				skip += rest[0].children
				rest = rest[1:]
			}
		}
	}
}

// find reports whether the values of a column are optional.
func (f *footer) find(column string) (isOptional bool, err error) {
	if len(f.schema) == 0 {
		return false, malformed("the schema is empty")
	}
	var names []string
	for e := range f.leaves() {
		if e.name == column {
			return e.repetition == optional, e.check()
		}
		if e.check() == nil && len(names) < 8 {
			names = append(names, fmt.Sprintf("%.32q", e.name))
		}
	}
	return false, fmt.Errorf("%w: %q; the file has %s", ErrColumn, column, strings.Join(names, ", "))
}

// check makes sure that a leaf of the schema is text.
func (e *element) check() error {
	switch {
	case e.kind != typeByteArray || e.converted != absent && e.converted != convertedUTF8:
		return fmt.Errorf("%w: %q has another type than string", ErrColumn, e.name)
	case e.repetition != required && e.repetition != optional:
		return fmt.Errorf("%w: %q is a list", ErrColumn, e.name)
	}
	return nil
}
