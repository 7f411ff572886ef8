package fetch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer/link"
	"github.com/starling-network/starling/network/peer/relay"
	"github.com/starling-network/starling/network/peer/wire"
)

const (
	streamsPerPeer = 2                     // of one fetch: more do not help, and delay everything else
	requestsAhead  = 2                     // requests sent before the answer to the first is read
	attempts       = 4                     // times a peer may fail without delivering anything
	retryAfter     = 50 * time.Millisecond // doubles with every failure
)

// work fetches spans from one peer until there are none, or the peer has failed. It connects before it takes a span:
// it takes long to find a peer dead, and no span waits for that.
func (d *download) work(ctx context.Context, t *transfer, id peer.ID) {
	if err := d.fetcher.reach(ctx, id); err != nil {
		d.fail(id, err)
		return
	}
	for failures := 0; ; {
		first, ok := t.take(id, width(d.fetcher.config.Links.Rate(id)), true)
		if !ok {
			return
		}
		delivered, err := d.session(ctx, t, id, first)
		if err == nil {
			failures = 0
			continue
		}
		if ctx.Err() != nil || d.fetcher.isHostile(id) { // another worker of the peer may have found out
			return
		}
		d.fail(id, err)
		if errors.Is(err, wire.ErrHostile) {
			d.fetcher.drop(id)
		}
		if errors.Is(err, wire.ErrHostile) || errors.Is(err, wire.ErrNotFound) || errors.Is(err, wire.ErrRefused) ||
			errors.Is(err, blob.ErrTooLarge) {
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

// session opens a stream and fetches spans over it, starting with first, until none is free. It gives
// back the items that it took and did not deliver.
func (d *download) session(ctx context.Context, t *transfer, id peer.ID, first span) (delivered int, err error) {
	pending := []span{first}
	defer func() {
		for _, s := range pending {
			t.giveBack(s)
		}
	}()
	w, release, err := d.fetcher.dial(ctx, id)
	if err != nil {
		return 0, err
	}
	defer release()
	w.Waits(true)
	defer w.Waits(false)
	defer context.AfterFunc(ctx, func() { _ = w.Reset() })()
	defer func() {
		if err != nil {
			_ = w.Reset()
		}
	}()
	if err := send(w, t, first); err != nil {
		return 0, err
	}
	buf := wire.Buffers.Get().(*wire.Buffer)
	defer wire.Buffers.Put(buf)
	for len(pending) > 0 {
		for len(pending) < requestsAhead {
			s, ok := t.take(id, width(d.fetcher.config.Links.Rate(id)), false)
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
func send(w *link.Stream, t *transfer, s span) error {
	_, err := w.Write(t.request(s.lo, s.hi).Encode())
	return err
}

// receive reads the answer for a span and delivers its items.
func receive(w *link.Stream, t *transfer, s span, buf []byte) (delivered int, err error) {
	if err := wire.ReadStatus(w); err != nil {
		return 0, err
	}
	for i := s.lo; i < s.hi; i++ {
		data, err := readItem(w, t, buf)
		if err != nil {
			return delivered, err
		}
		w.Came(len(data))
		err = t.deliver(i, data)
		if errors.Is(err, blob.ErrCorrupt) {
			return delivered, fmt.Errorf("%w: %w", wire.ErrHostile, err)
		}
		if err != nil {
			t.stop(err)
			return delivered, err
		}
		delivered++
	}
	return delivered, nil
}

// readItem reads an item: blob.ErrTooLarge before the bytes of one that the caller does not take.
func readItem(w *link.Stream, t *transfer, buf []byte) ([]byte, error) {
	data, err := wire.ReadFrame(w, buf, t.most)
	if long := (*wire.LongError)(nil); errors.As(err, &long) && long.Bytes <= int64(t.limit) {
		err = fmt.Errorf("a leaf of %d bytes, this host takes %d: %w", long.Bytes, t.most, blob.ErrTooLarge)
	}
	return data, err
}

// reach connects to a peer that was not hostile so far.
func (h *Fetcher) reach(ctx context.Context, id peer.ID) error {
	if h.isHostile(id) {
		return fmt.Errorf("%w before", wire.ErrHostile)
	}
	ctx, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "a direct one may follow"), link.DialTimeout)
	defer cancel()
	return h.config.Host.Connect(ctx, peer.AddrInfo{ID: id})
}

// dial opens a blob stream to a peer, after waiting for a free slot, which release gives back.
func (h *Fetcher) dial(ctx context.Context, id peer.ID) (w *link.Stream, release func(), err error) {
	slots := h.streamSlots(id)
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, link.DialTimeout)
	defer cancel()
	s, err := relay.OpenStream(ctx, h.config.Host, id, wire.Protocol, h.reach)
	if err != nil {
		<-slots
		return nil, nil, err
	}
	return h.config.Links.Stream(s), func() { <-slots }, nil
}

func (h *Fetcher) streamSlots(id peer.ID) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	slots, ok := h.streams[id]
	if !ok {
		slots = make(chan struct{}, wire.StreamsOut)
		h.streams[id] = slots
	}
	return slots
}
