// Package lines reads files of records, one a line, while other processes add lines to them. It reads the metrics of a
// run fast; what records mean is for its callers.
package lines

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/starling-network/starling/compute/kernel"
)

// maxLine bounds a record; maxRecords those of a file.
const (
	maxLine    = 4 << 20
	maxRecords = 4_000_000
)

// File is a file of records, one a line, of which all complete lines are read.
type File[T any] struct {
	Path    string
	Decode  func(line []byte) (T, error) // nil: JSON
	Records []T                          // of all complete lines, in the order of the file

	offset int64
	info   fs.FileInfo
}

// Look reads what is new, and reports whether there is something. A file that was replaced or cut is read from its
// beginning into a new list: who holds the old one keeps it as it was.
func (f *File[T]) Look() (changed bool, err error) {
	info, err := os.Stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		changed = f.Records != nil
		f.Records, f.offset, f.info = nil, 0, nil
		return changed, nil
	}
	if err != nil {
		return false, err
	}
	same := f.info != nil && os.SameFile(f.info, info)
	if same && info.Size() == f.offset {
		return false, nil
	}
	if !same || info.Size() < f.offset {
		changed = f.offset > 0
		f.Records, f.offset = nil, 0
	}
	f.info = info
	file, err := os.Open(f.Path)
	if err != nil {
		return changed, err
	}
	defer file.Close()
	b := make([]byte, info.Size()-f.offset)
	n, err := file.ReadAt(b, f.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return changed, err
	}
	return f.take(b[:n]) || changed, nil
}

// partBytes is what one goroutine reads at least.
const partBytes = 256 << 10

// take decodes the complete lines of b: those of a long run on all processors, in the order of the file.
func (f *File[T]) take(b []byte) (changed bool) {
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	if len(b) == 0 {
		return false
	}
	f.offset += int64(len(b))
	parts := make([][]T, min(kernel.Cores, 1+len(b)/partBytes))
	var all sync.WaitGroup
	for i := range parts {
		end := len(b)
		if rest := len(parts) - i; rest > 1 {
			end = bytes.IndexByte(b[len(b)/rest:], '\n') + len(b)/rest + 1
		}
		lines := b[:end]
		b = b[end:]
		all.Go(func() { parts[i] = f.parse(lines) })
	}
	all.Wait()
	n := 1 // a file without records is one, too
	for _, p := range parts {
		n += len(p)
	}
	f.Records = slices.Grow(f.Records, n)
	for _, p := range parts {
		f.Records = append(f.Records, p[:min(len(p), maxRecords-len(f.Records))]...)
	}
	return true
}

// parse reads lines. One that is no record is passed over: it is not for a page to repair.
func (f *File[T]) parse(lines []byte) []T {
	decode := f.Decode
	if decode == nil {
		decode = func(line []byte) (r T, err error) { return r, json.Unmarshal(line, &r) }
	}
	records := make([]T, 0, bytes.Count(lines, []byte("\n")))
	for line := range bytes.Lines(lines) {
		line = line[:len(line)-1]
		if len(line) == 0 || len(line) > maxLine {
			continue
		}
		if r, err := decode(line); err == nil {
			records = append(records, r)
		}
	}
	return records
}
