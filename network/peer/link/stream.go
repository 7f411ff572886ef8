package link

import (
	"bufio"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/starling-network/starling/network/peer/wire"
)

// Stream is a stream that counts its bytes and fails when none passes for the stall time.
type Stream struct {
	network.Stream
	Paced bool          // what is written is bulk
	Count *atomic.Int64 // of the bytes that are written; nil: they are not counted here

	table *Table
	link  *link
	in    *bufio.Reader
}

// Stream returns a stream of the host as one that is counted for the link to its peer.
func (t *Table) Stream(s network.Stream) *Stream {
	w := &Stream{Stream: s, table: t, link: t.to(s.Conn().RemotePeer())}
	w.in = bufio.NewReaderSize(timed{w}, 4096)
	return w
}

// Read reads through the buffer.
func (w *Stream) Read(p []byte) (int, error) { return w.in.Read(p) }

// Waits says that a caller begins, or ends, to wait for bulk from the peer.
func (w *Stream) Waits(begins bool) { w.link.waits(begins) }

// Came counts bytes of bulk that came for a caller that waits.
func (w *Stream) Came(n int) { w.link.came(n) }

// Write writes p piece by piece, so that a slow peer needs to take a piece, not the whole, within the stall time.
func (w *Stream) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		piece := p[done:min(done+wire.PieceBytes, len(p))]
		if w.Paced {
			if err := w.link.await(w.table.life.Context(), len(piece)); err != nil {
				return done, err
			}
		}
		_ = w.SetWriteDeadline(time.Now().Add(w.table.stall))
		n, err := w.Stream.Write(piece)
		done += n
		w.table.sent.Add(uint64(n))
		w.link.sent.Add(uint64(n))
		if w.Count != nil {
			w.Count.Add(int64(n))
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// timed is the unbuffered read side of a stream.
type timed struct{ *Stream }

func (t timed) Read(p []byte) (int, error) {
	_ = t.SetReadDeadline(time.Now().Add(t.table.stall))
	n, err := t.Stream.Stream.Read(p)
	t.table.received.Add(uint64(n))
	t.link.received.Add(uint64(n))
	return n, err
}
