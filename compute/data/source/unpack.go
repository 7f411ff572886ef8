package source

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// MaxUnpacked is how many bytes a document may have, a line of JSONL, or a column of Parquet.
const MaxUnpacked = 2 << 30

// maxZstdWindow is the memory that a zstd file may ask its reader for: that of zstd --long=27.
const maxZstdWindow = 128 << 20

var (
	// ErrPacked is returned for a .gz or .zst file that is cut off or damaged.
	ErrPacked = errors.New("cannot be unpacked: is it cut off or damaged?")
	// ErrTooLarge is returned for a document or file that is larger than a limit.
	ErrTooLarge = errors.New("larger than the limit: split it")
)

// opened is a reader of the bytes of a file as they lie there.
func (f File) opened() (io.ReadCloser, error) {
	if f.Open != nil {
		return f.Open()
	}
	return memory{bytes.NewReader(f.Data)}, nil
}

// memory is a file that is in memory.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// random is a reader of any part of a file.
func (f File) random() (r interface {
	io.ReaderAt
	io.Closer
}, size int64, err error) {
	plain, err := f.opened()
	if err != nil {
		return nil, 0, err
	}
	if at, ok := plain.(interface {
		io.ReadSeekCloser
		io.ReaderAt
	}); ok {
		size, err := at.Seek(0, io.SeekEnd)
		return at, size, err
	}
	all, err := io.ReadAll(plain)
	return memory{bytes.NewReader(all)}, int64(len(all)), errors.Join(err, plain.Close())
}

// unpacking is a reader of the bytes that are packed in a file.
type unpacking struct {
	io.Reader
	from io.Closer
	end  func()
	n    int64 // bytes so far
}

// unpacked is a reader of a file without the compression that the end of its name says.
func (f File) unpacked() (io.ReadCloser, error) {
	raw, err := f.opened()
	if err != nil {
		return nil, err
	}
	u := &unpacking{from: raw, end: func() {}}
	switch {
	case strings.HasSuffix(f.Name, ".gz"):
		u.Reader, err = gzip.NewReader(raw)
	case strings.HasSuffix(f.Name, ".zst"):
		var z *zstd.Decoder
		// One at a time: it then starts no goroutine.
		z, err = zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err == nil {
			u.Reader, u.end = z, z.Close
		}
	default:
		return raw, nil
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w (%w)", ErrPacked, err), raw.Close())
	}
	return u, nil
}

// Read implements io.Reader.
func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	u.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w (%w, after %d bytes of text)", ErrPacked, err, u.n)
	}
	return n, err
}

// Close implements io.Closer.
func (u *unpacking) Close() error {
	u.end()
	return u.from.Close()
}
