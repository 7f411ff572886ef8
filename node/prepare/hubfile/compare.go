package hubfile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
)

// errDiffers ends the comparison of a file.
var errDiffers = errors.New("the bytes differ")

// IsAt reports whether the file at a path has the bytes that f writes.
func (f File) IsAt(path string) (bool, error) {
	there, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer there.Close()
	c := &comparison{of: bufio.NewReaderSize(there, comparedBytes)}
	if err := f.Write(c); err != nil {
		if errors.Is(err, errDiffers) {
			err = nil
		}
		return false, err
	}
	_, err = c.of.ReadByte()
	if err == io.EOF {
		return true, nil
	}
	return false, err
}

// comparedBytes is how much of a file is read at a time.
const comparedBytes = 1 << 20

// comparison is a writer of the bytes that another stream is to have next: errDiffers if it has others.
type comparison struct {
	of   *bufio.Reader
	read [comparedBytes]byte
}

// Write implements io.Writer.
func (c *comparison) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, comparedBytes) {
		got := c.read[:len(part)]
		if _, err := io.ReadFull(c.of, got); err == io.EOF || err == io.ErrUnexpectedEOF {
			return n, errDiffers
		} else if err != nil {
			return n, err
		}
		if !bytes.Equal(got, part) {
			return n, errDiffers
		}
		n += len(part)
	}
	return n, nil
}
