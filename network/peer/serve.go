package peer

import (
	"errors"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/starling-network/starling/network/blob"
)

// slotWait is how long a request waits for an upload slot before the answer is statusBusy.
const slotWait = 2 * time.Second

// serve answers the requests of one stream.
func (h *Host) serve(s network.Stream) {
	if !h.begin() {
		_ = s.Reset()
		return
	}
	defer h.serving.Done()

	if err := s.Scope().ReserveMemory(frameHead+blob.LeafBytes, network.ReservationPriorityMedium); err != nil {
		_ = s.Reset()
		return
	}
	defer s.Scope().ReleaseMemory(frameHead + blob.LeafBytes)
	u := &upload{host: h, wire: h.newWire(s)}
	u.wire.paced = true
	defer u.close()
	for {
		body, err := readRequest(u.wire)
		if err == nil {
			err = u.answer(body)
		}
		if errors.Is(err, io.EOF) {
			_ = s.Close()
			return
		}
		if err != nil {
			_ = s.Reset()
			return
		}
	}
}

// begin counts an upload that Close will wait for: false if the host is closed.
func (h *Host) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return false
	}
	h.serving.Add(1)
	return true
}

// upload is one stream that we serve. It keeps the blob of the latest request open for the next.
type upload struct {
	host   *Host
	wire   *wire
	reader blob.Reader // or nil
}

func (u *upload) close() {
	if u.reader != nil {
		_ = u.reader.Close()
		u.reader = nil
	}
}

// answer answers one request. An error means that the stream is of no more use.
func (u *upload) answer(body []byte) error {
	req, c, err := parseRequest(body)
	if err != nil {
		return u.status(statusRefused)
	}
	if !u.host.acquireSlot() {
		return u.status(statusBusy)
	}
	defer func() { <-u.host.slots }()
	if !u.open(c) {
		return u.status(statusNotFound)
	}
	m := u.reader.Manifest()
	if int(req.To) > len(m.Leaves) {
		return u.status(statusRefused)
	}
	if err := u.status(statusOK); err != nil {
		return err
	}
	if req.manifest() {
		return u.frame(append(make([]byte, frameHead), m.Encode()...))
	}
	return u.leaves(int(req.From), int(req.To))
}

// open makes u.reader read the blob c: false if the blob is absent, damaged, or not to be served.
func (u *upload) open(c blob.CID) bool {
	if u.reader == nil || !u.reader.Manifest().Root.Equals(c) {
		u.close()
		r, err := u.host.config.Store.Open(u.host.ctx, c)
		if err != nil {
			return false
		}
		u.reader = r
	}
	return u.host.config.Serve(c)
}

func (u *upload) leaves(from, to int) error {
	buf := frames.Get().(*frameBuffer)
	defer frames.Put(buf)
	for i := from; i < to; i++ {
		frame, err := u.reader.Leaf(buf[:frameHead], i)
		if err != nil {
			return err
		}
		if err := u.frame(frame); err != nil {
			return err
		}
	}
	return nil
}

// frame sends b, whose first bytes are left free for the head.
func (u *upload) frame(b []byte) error {
	putFrameHead(b)
	_, err := u.wire.Write(b)
	return err
}

func (u *upload) status(s byte) error {
	_, err := u.wire.Write([]byte{s})
	return err
}

// acquireSlot reserves an upload slot, which its user gives back by receiving from h.slots.
func (h *Host) acquireSlot() bool {
	select {
	case h.slots <- struct{}{}:
		return true
	default:
	}
	wait := time.NewTimer(slotWait)
	defer wait.Stop()
	select {
	case h.slots <- struct{}{}:
		return true
	case <-wait.C:
	case <-h.ctx.Done():
	}
	return false
}
