package peer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/network/blob"
)

// Protocol is the blob exchange. A client opens a stream and sends requests, of which the server answers one after the
// other, so a client that keeps one request ahead of its reading never waits for a round trip:
//
//	request   u16 length | canonical {1: root CID, 2: from, 3: to}     leaves from..to; from = to = 0 asks for the manifest
//	answer    u8 status, and if it is statusOK:
//	  manifest  u32 length | encoded blob.Manifest
//	  leaves    (to-from) times: u32 length | leaf
//
// Integers are big-endian. A server that cannot go on after statusOK resets the stream.
const Protocol = "/starling/blob/1"

// Statuses of an answer. Numbers are the format.
const (
	statusOK       = 0
	statusNotFound = 1 // absent, or not to be given to others: the answer does not tell which
	statusBusy     = 2 // no upload slot became free: ask again later, or others
	statusRefused  = 3 // the request makes no sense
)

// Limits of one message.
const (
	maxRequestBytes = 128
	maxRange        = 64               // leaves of one request
	pieceBytes      = 64<<10 - muxHead // bytes that must pass within the stall time: a message of the multiplexer
	muxHead         = 12               // bytes that the multiplexer (yamux) puts before a message
)

// Errors of one peer's answer. Those of a whole Fetch come in a FetchError.
var (
	ErrNotFound = blob.ErrNotFound
	ErrBusy     = errors.New("peer is busy")
	ErrRefused  = errors.New("peer refused the request")
	ErrHostile  = errors.New("peer sent what an honest one never sends")
)

// request is what a client asks for. Its root was checked by parseRequest.
type request struct {
	Root []byte `cbor:"1,keyasint"`
	From uint32 `cbor:"2,keyasint"`
	To   uint32 `cbor:"3,keyasint"`
}

func (r request) manifest() bool { return r.To == 0 }

func (r request) encode() []byte {
	body := canon.MustMarshal(r)
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(body))), body...)
}

// parseRequest reads a stranger's request, without its length.
func parseRequest(body []byte) (request, blob.CID, error) {
	var r request
	if err := canon.Unmarshal(body, &r); err != nil {
		return r, blob.CID{}, err
	}
	c, err := blob.FromBytes(r.Root)
	if err != nil {
		return r, c, err
	}
	if r.From > r.To || r.To-r.From > maxRange || (r.From == r.To && r.To != 0) || r.To > blob.MaxLeaves {
		return r, c, fmt.Errorf("peer: leaves %d to %d: %w", r.From, r.To, ErrRefused)
	}
	return r, c, nil
}

// readRequest returns the body of the next request: io.EOF at the proper end of a stream.
func readRequest(r io.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint16(head[:])
	if n > maxRequestBytes {
		return nil, fmt.Errorf("peer: request of %d bytes: %w", n, ErrRefused)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}

// readStatus reads the first byte of an answer.
func readStatus(r io.Reader) error {
	var status [1]byte
	if _, err := io.ReadFull(r, status[:]); err != nil {
		return err
	}
	switch status[0] {
	case statusOK:
		return nil
	case statusNotFound:
		return ErrNotFound
	case statusBusy:
		return ErrBusy
	case statusRefused:
		return ErrRefused
	}
	return fmt.Errorf("status %d: %w", status[0], ErrHostile)
}

// readFrame reads a length and as many bytes, at most limit, into buf if it is large enough. A frame beyond a leaf is
// read as it grows, so that a length alone makes us allocate nothing.
func readFrame(r io.Reader, buf []byte, limit int) ([]byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > int64(limit) {
		return nil, fmt.Errorf("frame of %d bytes, at most %d expected: %w", n, limit, ErrHostile)
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

// frameHead is the number of bytes before the content of a frame.
const frameHead = 4

// putFrameHead fills in the head of a frame whose content follows it in b.
func putFrameHead(b []byte) { binary.BigEndian.PutUint32(b, uint32(len(b)-frameHead)) }

// frames recycles buffers that hold a frame of one leaf.
var frames = sync.Pool{New: func() any { return new([frameHead + blob.LeafBytes]byte) }}

type frameBuffer = [frameHead + blob.LeafBytes]byte

// wire is a stream that counts its bytes and fails when none passes for the stall time.
type wire struct {
	network.Stream
	host  *Host
	link  *link
	paced bool        // what is written is bulk
	turn  *leafUpload // it counts for this one, if any
	in    *bufio.Reader
}

func (h *Host) newWire(s network.Stream) *wire {
	w := &wire{Stream: s, host: h, link: h.links.to(s.Conn().RemotePeer())}
	w.in = bufio.NewReaderSize(timed{w}, 4096)
	return w
}

// Read reads through the buffer.
func (w *wire) Read(p []byte) (int, error) { return w.in.Read(p) }

// Write writes p piece by piece, so that a slow peer needs to take a piece, not the whole, within the stall time.
func (w *wire) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		piece := p[done:min(done+pieceBytes, len(p))]
		if w.paced {
			if err := w.link.await(w.host.ctx, len(piece)); err != nil {
				return done, err
			}
		}
		_ = w.SetWriteDeadline(time.Now().Add(w.host.config.Stall))
		n, err := w.Stream.Write(piece)
		done += n
		w.host.sent.Add(uint64(n))
		w.link.sent.Add(uint64(n))
		if w.turn != nil {
			w.turn.bytes.Add(int64(n))
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// timed is the unbuffered read side of a wire.
type timed struct{ *wire }

func (t timed) Read(p []byte) (int, error) {
	_ = t.SetReadDeadline(time.Now().Add(t.host.config.Stall))
	n, err := t.Stream.Read(p)
	t.host.received.Add(uint64(n))
	t.link.received.Add(uint64(n))
	return n, err
}
