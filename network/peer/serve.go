package peer

import (
	"errors"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/starling-network/starling/network/blob"
)

// serve answers the requests of one stream.
func (h *Host) serve(s network.Stream) {
	if !h.begin() {
		_ = s.Reset()
		return
	}
	defer h.serving.Done()

	u := &upload{host: h, standing: h.config.Standing(s.Conn().RemotePeer())}
	if !h.open.admit(s, u.standing) {
		_ = s.Reset()
		return
	}
	defer h.open.leave(s, u.standing)
	u.wire = h.newWire(s)
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
	host     *Host
	standing Standing // of the peer
	wire     *wire
	reader   blob.Reader // or nil
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
	turn, ok := u.turn(slotWait)
	if !ok {
		return u.status(statusBusy)
	}
	ended := false
	end := func() {
		if !ended {
			ended = true
			u.end(turn)
		}
	}
	defer end()
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
	for i := int(req.From); i < int(req.To); i++ {
		if ended { // others may come between two leaves
			if turn, ok = u.turn(u.host.config.Stall / 2); !ok {
				return ErrBusy
			}
			ended = false
		}
		if err := u.leaf(i); err != nil {
			return err
		}
		end()
	}
	return nil
}

// turn waits for a slot; the bytes written from then on are those of the upload that has it.
func (u *upload) turn(patience time.Duration) (*leafUpload, bool) {
	turn := &leafUpload{peer: u.wire.Conn().RemotePeer(), standing: u.standing, drop: func() { _ = u.wire.Reset() }}
	if !u.host.slots.await(u.host.ctx, turn, patience) {
		return nil, false
	}
	u.wire.turn = turn
	return turn, true
}

func (u *upload) end(turn *leafUpload) {
	u.wire.turn = nil
	u.host.slots.end(turn, time.Now())
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
	return u.host.config.Serve(u.standing, c)
}

// leaf sends the leaf i. The memory for it counts while it is on its way.
func (u *upload) leaf(i int) error {
	if err := u.wire.Scope().ReserveMemory(len(frameBuffer{}), network.ReservationPriorityMedium); err != nil {
		return err
	}
	defer u.wire.Scope().ReleaseMemory(len(frameBuffer{}))
	buf := frames.Get().(*frameBuffer)
	defer frames.Put(buf)
	frame, err := u.reader.Leaf(buf[:frameHead], i)
	if err != nil {
		return err
	}
	return u.frame(frame)
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
