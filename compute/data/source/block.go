package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"unsafe"

	"github.com/starling-network/starling/compute/data/parquet"
)

// Block is a part of a file of text: documents, or a part of one.
type Block struct {
	Bytes int // of the file, unpacked
	// Begins and Ends report whether the first document begins in the block, and the last ends in it: false only of
	// parts of a text.
	Begins, Ends bool

	docs  []Document
	lines []byte // of JSONL, of which the documents are made when they are asked for
	first int    // number of the first of lines
	file  *File
}

// Documents are those of the block that are not empty. The error is that of Blocks.
func (b Block) Documents() ([]Document, error) {
	if b.lines == nil {
		return b.docs, nil
	}
	return jsonLines(b.file, b.lines, b.first)
}

// Blocks reads a file of text from its beginning to its end in blocks of about size bytes, whose documents, one after
// the other, are those of the file. cut says where a text may be divided, which is before its end, 0: nowhere; nil:
// texts are whole. Blocks are independent of each other. Errors are of type *Error and wrap ErrFormat, ErrNoText,
// ErrLine, ErrField, ErrCSV, ErrPacked, ErrTooLarge or an error of package parquet.
func (f File) Blocks(size int, cut func(text string) int) iter.Seq2[Block, error] {
	return func(yield func(Block, error) bool) {
		ended := false
		err := f.blocks(size, cut, func(b Block) bool {
			ended = !yield(b, nil)
			return !ended
		})
		if err == nil || ended {
			return
		}
		at := (*Error)(nil)
		if !errors.As(err, &at) {
			err = &Error{Name: f.Name, Err: err}
		}
		yield(Block{}, err)
	}
}

// blocks passes blocks on until visit returns false.
func (f File) blocks(size int, cut func(text string) int, visit func(Block) bool) error {
	if f.Field == "" {
		f.Field = DefaultField
	}
	read := map[string]func(*bufio.Reader, int, func(Block) bool) error{JSONL: f.lineBlocks, CSV: f.rowBlocks,
		Text: func(r *bufio.Reader, size int, visit func(Block) bool) error { return textBlocks(r, size, cut, visit) },
	}[f.Format]
	switch {
	case f.Format == Parquet:
		return f.columnBlocks(size, visit)
	case Tokenized(f.Format):
		return ErrNoText
	case read == nil:
		return fmt.Errorf("%q: %w", f.Format, ErrFormat)
	}
	r, err := f.unpacked()
	if err != nil {
		return err
	}
	return errors.Join(read(bufio.NewReaderSize(r, readAhead), size, visit), r.Close())
}

// readAhead is how many bytes of a file are read at a time.
const readAhead = 1 << 18

// gathered passes documents on in blocks of a size.
type gathered struct {
	size  int
	visit func(Block) bool
	block Block
}

// add reports whether more are wanted. bytes are those of the document in the file.
func (g *gathered) add(text string, bytes int) bool {
	if text != "" {
		g.block.docs = append(g.block.docs, Document{Text: text})
	}
	g.block.Bytes += bytes
	return g.block.Bytes < g.size || g.pass()
}

// pass passes on what was added.
func (g *gathered) pass() bool {
	b := g.block
	g.block = Block{}
	b.Begins, b.Ends = true, true
	return b.Bytes == 0 || g.visit(b)
}

func (f File) columnBlocks(size int, visit func(Block) bool) error {
	r, n, err := f.random()
	if err != nil {
		return err
	}
	g := &gathered{size: size, visit: visit}
	more := true
	err = parquet.Each(r, n, f.Field, MaxUnpacked, func(text string) bool {
		more = g.add(text, len(text))
		return more
	})
	if err == nil && more {
		g.pass()
	}
	return errors.Join(err, r.Close())
}

func (f File) rowBlocks(r *bufio.Reader, size int, visit func(Block) bool) error {
	g := &gathered{size: size, visit: visit}
	more := true
	err := csvRows(r, f.Name, f.Field, func(text string, bytes int) bool {
		more = g.add(text, bytes)
		return more
	})
	if err == nil && more {
		g.pass()
	}
	return err
}

// lineBlocks divides a file between lines.
func (f File) lineBlocks(r *bufio.Reader, size int, visit func(Block) bool) error {
	before := skipMark(r)
	for line := 1; ; {
		b := Block{Begins: true, Ends: true, first: line, file: &f, Bytes: before}
		before = 0
		lines, err := wholeLines(r, size)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		b.lines = lines
		b.Bytes += len(lines)
		if len(lines) > 0 && !visit(b) {
			return nil
		}
		if err != nil {
			return nil
		}
		line += bytes.Count(lines, []byte{'\n'})
	}
}

// wholeLines reads lines of at least size bytes, or all that are left, of which the last may have no end.
func wholeLines(r *bufio.Reader, size int) (lines []byte, err error) {
	lines = make([]byte, 0, size+size/4)
	for {
		part, err := r.ReadSlice('\n')
		lines = append(lines, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return lines, err
		case len(lines) >= size:
			return lines, nil
		}
		if len(lines) > MaxUnpacked {
			return nil, fmt.Errorf("%w (%d bytes in a line)", ErrTooLarge, MaxUnpacked)
		}
	}
}

// textBlocks passes on the one document of a text, in parts where it may be divided.
func textBlocks(r *bufio.Reader, size int, cut func(text string) int, visit func(Block) bool) error {
	var text []byte
	begins := true
	for want := size; ; {
		more, err := fill(r, text, want)
		if text = more; len(text) > MaxUnpacked {
			return fmt.Errorf("%w (%d bytes of text that cannot be divided)", ErrTooLarge, MaxUnpacked)
		}
		ends := errors.Is(err, io.EOF)
		n := len(text)
		switch whole := unsafe.String(unsafe.SliceData(text), len(text)); {
		case ends:
		case err != nil:
			return err
		case cut == nil:
			n = 0
		default:
			n = cut(whole)
		}
		if n == 0 {
			if ends {
				return nil
			}
			want = 2 * len(text)
			continue
		}
		// text is not written to any more: the next part begins with a copy
		b := Block{Bytes: n, Begins: begins, Ends: ends, docs: []Document{{Text: unsafe.String(unsafe.SliceData(text), n)}}}
		if !visit(b) || ends {
			return nil
		}
		begins, want = false, len(text)-n+size
		text = append(make([]byte, 0, want), text[n:]...)
	}
}

// fill appends bytes of r to text until text has want bytes. The error is io.EOF if r ends before.
func fill(r io.Reader, text []byte, want int) ([]byte, error) {
	if cap(text) < want {
		text = append(make([]byte, 0, want), text...)
	}
	n, err := io.ReadFull(r, text[len(text):want])
	if err == io.ErrUnexpectedEOF { // and not what wraps it
		err = io.EOF
	}
	return text[:len(text)+n], err
}
