package boxed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrFrame is wrapped by every reason why bytes are no frame.
var ErrFrame = errors.New("not a frame")

// ReadFrame reads a frame: four bytes of length, little-endian, then as many bytes, at most limit.
func ReadFrame(r io.Reader, limit int) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(size[:])
	if uint64(n) > uint64(limit) {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrFrame, n, limit)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}

// WriteFrame writes a frame of at most limit bytes.
func WriteFrame(w io.Writer, body []byte, limit int) error {
	if len(body) > limit {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrFrame, len(body), limit)
	}
	_, err := w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}
