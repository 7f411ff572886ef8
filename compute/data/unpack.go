package data

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// MaxUnpacked is the largest size in bytes of what a compressed source unpacks to.
const MaxUnpacked = 2 << 30

// maxZstdWindow is the memory that a zstd file may ask its reader for: that of zstd --long=27.
const maxZstdWindow = 128 << 20

var (
	// ErrPacked is returned for a .gz or .zst file that is cut off or damaged.
	ErrPacked = errors.New("cannot be unpacked: is it cut off or damaged?")
	// ErrTooLarge is returned for a source that unpacks to more than MaxUnpacked.
	ErrTooLarge = errors.New("unpacks to more than the limit: split it")
)

// unpacked returns the bytes of a source without the compression that the end of its name says.
func unpacked(s Source, limit int64) ([]byte, error) {
	var r io.Reader
	var err error
	switch {
	case strings.HasSuffix(s.Name, ".gz"):
		r, err = gzip.NewReader(bytes.NewReader(s.Data))
	case strings.HasSuffix(s.Name, ".zst"):
		var z *zstd.Decoder
		// One at a time: it then starts no goroutine.
		z, err = zstd.NewReader(bytes.NewReader(s.Data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err == nil {
			defer z.Close()
			r = z
		}
	default:
		return s.Data, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrPacked, err)
	}
	out, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%w (%w, after %d bytes of text)", ErrPacked, err, len(out))
	}
	if int64(len(out)) > limit {
		return nil, fmt.Errorf("%w (%d bytes)", ErrTooLarge, limit)
	}
	return out, nil
}
