// Package linked connects the three parties of a divided model with each other and with clients, by the network's
// hosts: all know each other by their peer IDs, and the bytes between them are encrypted. Each party asks the party
// after it for its messages, and a client asks all three. The package computes nothing.
package linked

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/exchange/replicated"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/address"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/dialogue"
	"github.com/starling-network/starling/node/triple"
)

// protocol is that of questions to a party.
const protocol = "/starling/triple/1"

// Limits of a party.
const (
	atOnce  = 3                // images that are computed at the same time: one less than dialogues with one peer
	kept    = 16               // images whose messages the party before may still ask for
	refused = 1 << 10          // images that the party before learns the refusal of
	patient = 20 * time.Second // for which a message of another party is waited for
	about   = 1 << 18          // bytes of a manifest, and of a question besides shares
)

// ErrParty wraps every reason why a party does not answer as it should.
var ErrParty = errors.New("a party of the model does not answer")

// ErrPeer is wrapped by reasons why addresses are not those of three parties, or a client has no peer ID.
var ErrPeer = errors.New("not three parties with their clients")

// peers are the peer IDs of the parties, of which no two are one.
func peers(parties [replicated.Parties]string) (ids [replicated.Parties]peer.ID, err error) {
	for i, addr := range parties {
		is, err := address.Parse(addr)
		if err != nil {
			return ids, fmt.Errorf("%w: %w", ErrPeer, err)
		}
		if at := slices.Index(ids[:i], is.ID); at >= 0 {
			return ids, fmt.Errorf("%w: parties %d and %d are the peer %s", ErrPeer, at+1, i+1, is.ID)
		}
		ids[i] = is.ID
	}
	return ids, nil
}

// session names the computation of one image: the client draws it.
type session [16]byte

// by is the session of a client, in which no other client takes part.
func (s session) by(client peer.ID) (own session) {
	d := canon.Sum("starling/triple/session/1", []byte(client), s[:])
	copy(own[:], d[:])
	return own
}

// question is one to a party.
type question struct {
	Kind    uint8     `cbor:"1,keyasint"`
	Session session   `cbor:"2,keyasint"`
	Number  uint32    `cbor:"3,keyasint,omitempty"` // of a message
	Shares  [2][]byte `cbor:"4,keyasint"`           // of the values of an image
}

// Kinds of questions: which model it is; the scores of an image; a message of a computation.
const kindModel, kindImage, kindMessage = 1, 2, 3

// read reads a question of at most a number of bytes.
func read(b []byte, longest int) (q question, err error) {
	if len(b) > longest {
		return q, fmt.Errorf("%w: a question of %d bytes", ErrParty, len(b))
	}
	return q, canon.Unmarshal(b, &q)
}

// answer is that to a question: bytes, or a reason.
type answer struct {
	Bytes   []byte `cbor:"1,keyasint"`
	Refused string `cbor:"2,keyasint,omitempty"`
}

// ask asks a party in a dialogue.
func ask(ctx context.Context, d *dialogue.Dialogue, q question) ([]byte, error) {
	b, err := d.Ask(ctx, canon.MustMarshal(q))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrParty, err)
	}
	var a answer
	if err := canon.Unmarshal(b, &a); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrParty, err)
	}
	if a.Refused != "" {
		return nil, fmt.Errorf("%w: %.200q", ErrParty, a.Refused)
	}
	return a.Bytes, nil
}

// Party is one party on a host.
type Party struct {
	share   *triple.Share
	host    *peer.Host
	before  peer.ID // which gets messages
	after   string  // address of the party whose messages this one needs
	clients func(peer.ID) bool
	ends    <-chan struct{}

	mu       sync.Mutex
	changed  chan struct{} // closed at each change
	sessions map[session]*computation
	order    []session // of sessions, the oldest first
	running  int
}

// computation has the messages of a party in a session.
type computation struct {
	messages [][]byte
	over     bool
}

// Serve makes a host answer as a party until the context ends. others are the addresses of the three parties, in their
// order; clients says which peers may ask.
func Serve(ctx context.Context, h *peer.Host, s *triple.Share, others [replicated.Parties]string,
	clients func(peer.ID) bool) error {
	ids, err := peers(others)
	if err != nil {
		return err
	}
	p := &Party{share: s, host: h, before: ids[(s.Party+2)%replicated.Parties],
		after: others[(s.Party+1)%replicated.Parties], clients: clients, ends: ctx.Done(), changed: make(chan struct{}),
		sessions: map[session]*computation{}}
	h.Converse(protocol, p.longest(), func(from peer.ID) dialogue.Answerer { return &conversation{p, from} })
	return nil
}

// longest is the number of bytes of the longest question.
func (p *Party) longest() int { return about + 16*p.share.Widths[0] }

// change wakes all that wait. The caller holds the lock.
func (p *Party) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// conversation is a dialogue with a peer.
type conversation struct {
	*Party
	from peer.ID
}

// End implements dialogue.Answerer.
func (c *conversation) End() {}

// Answer implements dialogue.Answerer.
func (c *conversation) Answer(b []byte) []byte {
	var out answer
	var err error
	if out.Bytes, err = c.answer(b); err != nil {
		out = answer{Refused: err.Error()}
	}
	return canon.MustMarshal(out)
}

func (c *conversation) answer(b []byte) ([]byte, error) {
	q, err := read(b, c.longest())
	if err != nil {
		return nil, err
	}
	switch {
	case q.Kind == kindMessage && c.from == c.before:
		return c.message(q.Session, q.Number)
	case q.Kind == kindModel && c.clients(c.from):
		return json.Marshal(c.share.Manifest)
	case q.Kind == kindImage && c.clients(c.from):
		return c.image(q.Session.by(c.from), q.Shares)
	}
	return nil, errors.New("not a question that this peer may ask")
}

// message is one of a computation, once it is there.
func (p *Party) message(of session, number uint32) ([]byte, error) {
	late := time.After(patient)
	for {
		p.mu.Lock()
		var b []byte
		c, changed, there, over := p.sessions[of], p.changed, false, false
		if c != nil {
			if there, over = number < uint32(len(c.messages)), c.over; there {
				b = c.messages[number]
			}
		}
		p.mu.Unlock()
		switch {
		case there:
			return b, nil
		case over:
			return nil, errors.New("the computation is over")
		}
		select {
		case <-changed:
		case <-p.ends:
			return nil, errors.New("the party ends")
		case <-late:
			return nil, errors.New("there is no such message")
		}
	}
}

// begin begins a session. One that is refused is known as over, so that the party before does not wait for it.
func (p *Party) begin(of session) (*computation, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions[of] != nil {
		return nil, errors.New("a session has one image")
	}
	c := &computation{over: p.running >= atOnce}
	p.sessions[of], p.order = c, append(p.order, of)
	p.forget()
	p.change()
	if c.over {
		return nil, errors.New("it computes for others: ask again")
	}
	p.running++
	return c, nil
}

// end ends a computation.
func (p *Party) end(c *computation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.over, p.running = true, p.running-1
	p.change()
}

// forget leaves the last sessions with messages, the last without, and all that are not over. The caller holds the
// lock.
func (p *Party) forget() {
	left := map[bool]int{true: kept, false: refused}
	for i, of := range slices.Backward(p.order) {
		c := p.sessions[of]
		has := len(c.messages) > 0
		if left[has]--; left[has] < 0 && c.over {
			delete(p.sessions, of)
			p.order = slices.Delete(p.order, i, i+1)
		}
	}
}

// image computes with shares of an image, and returns those of its scores.
func (p *Party) image(of session, shares [2][]byte) ([]byte, error) {
	var x replicated.Vector
	for i, b := range shares {
		var err error
		if x[i], err = replicated.Decode(b, p.share.Widths[0]); err != nil {
			return nil, err
		}
	}
	c, err := p.begin(of)
	if err != nil {
		return nil, err
	}
	defer p.end(c)
	ctx, cancel := context.WithTimeout(context.Background(), 2*patient)
	defer cancel()
	d, err := p.host.Dialogue(ctx, p.after, protocol, about+8*replicated.MaxWords)
	if err != nil {
		return nil, errors.New("the next party cannot be reached")
	}
	defer d.Close()
	var key prg.Key
	_, _ = rand.Read(key[:]) // never fails
	party, err := replicated.New(p.share.Party, key, &ring{ctx, p, c, d, of, 0})
	if err != nil {
		return nil, err
	}
	out, err := p.share.Scores(party, x)
	if err != nil {
		return nil, err
	}
	return replicated.Encode(slices.Concat(out[0], out[1])), nil
}

// ring is that of a computation.
type ring struct {
	ctx     context.Context
	party   *Party
	own     *computation
	next    *dialogue.Dialogue
	session session
	number  uint32
}

// Pass implements replicated.Ring.
func (r *ring) Pass(out []byte) ([]byte, error) {
	r.party.mu.Lock()
	r.own.messages = append(r.own.messages, out)
	r.party.change()
	r.party.mu.Unlock()
	in, err := ask(r.ctx, r.next, question{Kind: kindMessage, Session: r.session, Number: r.number})
	r.number++
	return in, err
}

// Run answers as a party on a host of its own until the context ends. clients are the peer IDs that may ask; ready gets
// the multiaddrs of the party.
func Run(ctx context.Context, key peer.Key, listen []string, s *triple.Share, parties [replicated.Parties]string,
	clients []string, ready func([]string)) error {
	ids, err := peers(parties)
	if err != nil {
		return err
	}
	known := slices.Clone(clients)
	for _, id := range clients {
		if _, err := address.Parse("/p2p/" + id); err != nil {
			return fmt.Errorf("%w: %q is no peer ID", ErrPeer, id)
		}
	}
	for _, id := range ids {
		known = append(known, id.String())
	}
	h, err := peer.New(peer.Config{Key: key, Store: blob.NewMemory(), Listen: listen,
		Standing: func(id peer.ID) admission.Standing {
			if slices.Contains(known, id.String()) {
				return admission.Member
			}
			return admission.Stranger
		}})
	if err != nil {
		return err
	}
	if own := ids[s.Party]; own != h.ID() {
		return errors.Join(fmt.Errorf("%w: the folder is that of party %d, which has the peer ID %s, and this is %s",
			ErrPeer, s.Party+1, own, h.ID()), h.Close())
	}
	asks := func(id peer.ID) bool { return slices.Contains(clients, id.String()) }
	if err := Serve(ctx, h, s, parties, asks); err != nil {
		return errors.Join(err, h.Close())
	}
	ready(h.Addrs())
	<-ctx.Done()
	return h.Close()
}
