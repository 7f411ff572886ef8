// Package wire is the format of the blob exchange: its requests, its answers, and how a stranger's bytes are read. It
// opens no stream and holds no blob.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/network/blob"
)

// Protocol is the blob exchange. A client opens a stream and sends requests, of which the server answers one after the
// other, so a client that keeps one request ahead of its reading never waits for a round trip:
//
//	request   u16 length | canonical {1: root CID, 2: from, 3: to}     leaves from..to; from = to = 0: the manifest
//	answer    u8 status, and if it is StatusOK:
//	  manifest  u32 length | encoded blob.Manifest
//	  leaves    (to-from) times: u32 length | leaf
//
// Integers are big-endian. A server that cannot continue after StatusOK resets the stream.
const Protocol = "/starling/blob/1"

// Statuses of an answer. Numbers are the format.
const (
	StatusOK       = 0
	StatusNotFound = 1 // absent, or not to be given to others: the answer does not tell which
	StatusBusy     = 2 // no upload slot became free: ask again later, or others
	StatusRefused  = 3 // the request makes no sense
)

// Limits of one message.
const (
	MaxRequestBytes = 128
	StreamsOut      = 4                // blob streams that a client opens to one peer
	MaxRange        = 64               // leaves of one request
	PieceBytes      = 64<<10 - muxHead // bytes that must pass within the stall time: a message of the multiplexer
	muxHead         = 12               // bytes that the multiplexer (yamux) puts before a message
)

// Errors of one peer's answer. Those of a whole fetch come in a fetch.Error.
var (
	ErrNotFound = blob.ErrNotFound
	ErrBusy     = errors.New("peer is busy")
	ErrRefused  = errors.New("peer refused the request")
	ErrHostile  = errors.New("peer sent what an honest one never sends")
)

// Request is what a client asks for. Its root was checked by ParseRequest.
type Request struct {
	Root []byte `cbor:"1,keyasint"`
	From uint32 `cbor:"2,keyasint"`
	To   uint32 `cbor:"3,keyasint"`
}

// IsManifest reports whether the request asks for the manifest, and not for leaves.
func (r Request) IsManifest() bool { return r.To == 0 }

// Encode returns the request with its length before it.
func (r Request) Encode() []byte {
	body := canon.MustMarshal(r)
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(body))), body...)
}

// ParseRequest reads a stranger's request, without its length.
func ParseRequest(body []byte) (Request, blob.CID, error) {
	var r Request
	if err := canon.Unmarshal(body, &r); err != nil {
		return r, blob.CID{}, err
	}
	c, err := blob.FromBytes(r.Root)
	if err != nil {
		return r, c, err
	}
	if r.From > r.To || r.To-r.From > MaxRange || (r.From == r.To && r.To != 0) || r.To > blob.MaxLeaves {
		return r, c, fmt.Errorf("peer: leaves %d to %d: %w", r.From, r.To, ErrRefused)
	}
	return r, c, nil
}

// ReadRequest returns the body of the next request: io.EOF at the proper end of a stream.
func ReadRequest(r io.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint16(head[:])
	if n > MaxRequestBytes {
		return nil, fmt.Errorf("peer: request of %d bytes: %w", n, ErrRefused)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}

// ReadStatus reads the first byte of an answer.
func ReadStatus(r io.Reader) error {
	var status [1]byte
	if _, err := io.ReadFull(r, status[:]); err != nil {
		return err
	}
	switch status[0] {
	case StatusOK:
		return nil
	case StatusNotFound:
		return ErrNotFound
	case StatusBusy:
		return ErrBusy
	case StatusRefused:
		return ErrRefused
	}
	return fmt.Errorf("status %d: %w", status[0], ErrHostile)
}

// LongError says that a frame has more bytes than were expected: ErrHostile.
type LongError struct {
	Bytes int64
	limit int
}

func (e *LongError) Error() string {
	return fmt.Sprintf("frame of %d bytes, at most %d expected: %v", e.Bytes, e.limit, ErrHostile)
}

// Unwrap returns ErrHostile.
func (*LongError) Unwrap() error { return ErrHostile }

// ReadFrame reads a length and as many bytes, at most limit, into buf if it is large enough. A frame beyond a leaf is
// read as it grows, so that a length alone makes us allocate nothing.
func ReadFrame(r io.Reader, buf []byte, limit int) ([]byte, error) {
	var head [HeadBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > int64(limit) {
		return nil, &LongError{n, limit}
	}
	if n <= int64(cap(buf)) {
		_, err := io.ReadFull(r, buf[:n])
		return buf[:n], err
	}
	data, err := io.ReadAll(io.LimitReader(r, n))
	if err == nil && int64(len(data)) < n {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

// HeadBytes is the number of bytes before the content of a frame.
const HeadBytes = 4

// PutHead fills in the head of a frame whose content follows it in b.
func PutHead(b []byte) { binary.BigEndian.PutUint32(b, uint32(len(b)-HeadBytes)) }

// Buffers recycles buffers that hold a frame of one leaf.
var Buffers = sync.Pool{New: func() any { return new(Buffer) }}

// Buffer holds a frame of one leaf.
type Buffer = [HeadBytes + blob.LeafBytes]byte
