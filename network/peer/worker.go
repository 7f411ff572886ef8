package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/starling-network/starling/network/blob"
)

const (
	streamsPerPeer = 2                     // of one fetch: more do not help, and delay everything else
	streamsOut     = 4                     // of all fetches, to one peer
	requestsAhead  = 2                     // requests sent before the answer to the first is read
	attempts       = 4                     // times a peer may fail without delivering anything
	retryAfter     = 50 * time.Millisecond // doubles with every failure
	dialTimeout    = 15 * time.Second
)

// work fetches spans from one peer until there are none, or the peer has failed. It connects before it takes a span:
// a dead peer takes long to be known for one, and nobody waits for it.
func (d *download) work(ctx context.Context, t *transfer, id ID) {
	if err := d.host.reach(ctx, id); err != nil {
		d.fail(id, err)
		return
	}
	for failures := 0; ; {
		first, ok := t.take(id, d.host.links.width(id), true)
		if !ok {
			return
		}
		delivered, err := d.session(ctx, t, id, first)
		if err == nil {
			failures = 0
			continue
		}
		if ctx.Err() != nil || d.host.isHostile(id) { // another worker of the peer may have found out
			return
		}
		d.fail(id, err)
		if errors.Is(err, ErrHostile) {
			d.host.drop(id)
		}
		if errors.Is(err, ErrHostile) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrRefused) {
			return
		}
		if delivered > 0 {
			failures = 0
		}
		if failures++; failures == attempts {
			return
		}
		select {
		case <-time.After(retryAfter << failures):
		case <-ctx.Done():
			return
		}
	}
}

// session opens a stream and fetches spans over it, starting with first, until none is free. What it took and did not
// deliver it gives back.
func (d *download) session(ctx context.Context, t *transfer, id ID, first span) (delivered int, err error) {
	pending := []span{first}
	defer func() {
		for _, s := range pending {
			t.giveBack(s)
		}
	}()
	w, release, err := d.host.dial(ctx, id)
	if err != nil {
		return 0, err
	}
	defer release()
	w.link.waits(true)
	defer w.link.waits(false)
	defer context.AfterFunc(ctx, func() { _ = w.Reset() })()
	defer func() {
		if err != nil {
			_ = w.Reset()
		}
	}()
	if err := send(w, t, first); err != nil {
		return 0, err
	}
	buf := frames.Get().(*frameBuffer)
	defer frames.Put(buf)
	for len(pending) > 0 {
		for len(pending) < requestsAhead {
			s, ok := t.take(id, d.host.links.width(id), false)
			if !ok {
				break
			}
			pending = append(pending, s)
			if err := send(w, t, s); err != nil {
				return delivered, err
			}
		}
		n, err := receive(w, t, pending[0], buf[:])
		delivered += n
		if err != nil {
			return delivered, err
		}
		pending = pending[1:]
	}
	_ = w.Close() // every answer is here: what the peer does now does not matter
	return delivered, nil
}

// send asks for a span.
func send(w *wire, t *transfer, s span) error {
	_, err := w.Write(t.request(s.lo, s.hi).encode())
	return err
}

// receive reads the answer for a span and delivers its items.
func receive(w *wire, t *transfer, s span, buf []byte) (delivered int, err error) {
	if err := readStatus(w); err != nil {
		return 0, err
	}
	for i := s.lo; i < s.hi; i++ {
		data, err := readFrame(w, buf, t.limit)
		if err != nil {
			return delivered, err
		}
		w.link.came(len(data))
		err = t.deliver(i, data)
		if errors.Is(err, blob.ErrCorrupt) {
			return delivered, fmt.Errorf("%w: %w", ErrHostile, err)
		}
		if err != nil {
			t.stop(err)
			return delivered, err
		}
		delivered++
	}
	return delivered, nil
}

// reach connects to a peer that was not hostile so far.
func (h *fetcher) reach(ctx context.Context, id ID) error {
	if h.isHostile(id) {
		return fmt.Errorf("%w before", ErrHostile)
	}
	ctx, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "a direct one may follow"), dialTimeout)
	defer cancel()
	return h.host.Connect(ctx, p2p.AddrInfo{ID: id})
}

// dial opens a blob stream to a peer, after waiting for a free slot, which release gives back.
func (h *fetcher) dial(ctx context.Context, id ID) (w *wire, release func(), err error) {
	slots := h.streamSlots(id)
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	s, err := h.stream(ctx, id)
	if err != nil {
		<-slots
		return nil, nil, err
	}
	return h.newWire(s), func() { <-slots }, nil
}

func (h *fetcher) streamSlots(id ID) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	slots, ok := h.streams[id]
	if !ok {
		slots = make(chan struct{}, streamsOut)
		h.streams[id] = slots
	}
	return slots
}
