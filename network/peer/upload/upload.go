// Package upload answers the blob requests of peers from a store, a leaf at a time, in the turns that package admission
// gives. It decides nothing about who may have which blob: the host says so.
package upload

import (
	"errors"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/lifetime"
	"github.com/starling-network/starling/network/peer/link"
	"github.com/starling-network/starling/network/peer/wire"
)

// Config says what is served, and to whom.
type Config struct {
	Store    blob.Store
	Standing func(peer.ID) admission.Standing
	// whether a stored blob may be given to a peer of a standing. A refused blob looks absent.
	Serve func(admission.Standing, blob.CID) bool
	Links *link.Table
	Life  *lifetime.Lifetime
	Slots int           // leaves under way at the same time, those to slow readers not counted
	Stall time.Duration // an upload without a byte of progress for so long has failed
}

// Server serves blobs to peers. Its methods may be called concurrently.
type Server struct {
	config Config
	slots  *admission.Slots
	open   admission.Streams // of peers
}

// NewServer returns a server that has no streams yet.
func NewServer(config Config) *Server {
	return &Server{config: config, slots: admission.NewSlots(config.Slots)}
}

// Answer answers the requests of one stream.
func (h *Server) Answer(s network.Stream) {
	if !h.config.Life.Begin() {
		_ = s.Reset()
		return
	}
	defer h.config.Life.Done()

	u := &upload{server: h, standing: h.config.Standing(s.Conn().RemotePeer())}
	if !h.open.Admit(s, u.standing) {
		_ = s.Reset()
		return
	}
	defer h.open.Leave(s, u.standing)
	u.stream = h.config.Links.Stream(s)
	u.stream.Paced = true
	defer u.close()
	for {
		body, err := wire.ReadRequest(u.stream)
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

// upload is one stream that we serve. It keeps the blob of the latest request open for the next.
type upload struct {
	server   *Server
	standing admission.Standing // of the peer
	stream   *link.Stream
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
	req, c, err := wire.ParseRequest(body)
	if err != nil {
		return u.status(wire.StatusRefused)
	}
	turn, ok := u.turn(admission.SlotWait)
	if !ok {
		return u.status(wire.StatusBusy)
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
		return u.status(wire.StatusNotFound)
	}
	m := u.reader.Manifest()
	if int(req.To) > len(m.Leaves) {
		return u.status(wire.StatusRefused)
	}
	if err := u.status(wire.StatusOK); err != nil {
		return err
	}
	if req.IsManifest() {
		return u.frame(append(make([]byte, wire.HeadBytes), m.Encode()...))
	}
	for i := int(req.From); i < int(req.To); i++ {
		if ended { // others may come between two leaves
			if turn, ok = u.turn(u.server.config.Stall / 2); !ok {
				return wire.ErrBusy
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
func (u *upload) turn(patience time.Duration) (*admission.Turn, bool) {
	turn := &admission.Turn{Peer: u.stream.Conn().RemotePeer(), Standing: u.standing,
		Drop: func() { _ = u.stream.Reset() }}
	if !u.server.slots.Await(u.server.config.Life.Context(), turn, patience) {
		return nil, false
	}
	u.stream.Count = &turn.Bytes
	return turn, true
}

func (u *upload) end(turn *admission.Turn) {
	u.stream.Count = nil
	u.server.slots.End(turn, time.Now())
}

// open makes u.reader read the blob c: false if the blob is absent, damaged, or not to be served.
func (u *upload) open(c blob.CID) bool {
	if u.reader == nil || !u.reader.Manifest().Root.Equals(c) {
		u.close()
		r, err := u.server.config.Store.Open(u.server.config.Life.Context(), c)
		if err != nil {
			return false
		}
		u.reader = r
	}
	return u.server.config.Serve(u.standing, c)
}

// leaf sends the leaf i. The memory for it counts while it is on its way.
func (u *upload) leaf(i int) error {
	if err := u.stream.Scope().ReserveMemory(len(wire.Buffer{}), network.ReservationPriorityMedium); err != nil {
		return err
	}
	defer u.stream.Scope().ReleaseMemory(len(wire.Buffer{}))
	buf := wire.Buffers.Get().(*wire.Buffer)
	defer wire.Buffers.Put(buf)
	frame, err := u.reader.Leaf(buf[:wire.HeadBytes], i)
	if err != nil {
		return err
	}
	return u.frame(frame)
}

// frame sends b, whose first bytes are left free for the head.
func (u *upload) frame(b []byte) error {
	wire.PutHead(b)
	_, err := u.stream.Write(b)
	return err
}

func (u *upload) status(s byte) error {
	_, err := u.stream.Write([]byte{s})
	return err
}
