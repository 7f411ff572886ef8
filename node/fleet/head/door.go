package head

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limits of connections whose other side has not yet proven a key.
const (
	maxWaiting  = 512              // of all places
	maxOfPlace  = 64               // of one place
	proofWithin = 10 * time.Second // from the start of a connection
)

// door accepts connections, and returns those whose other side has proven the key of a ticket. A connection without
// that proof is closed when its time is over, or when newer ones need its room: so hosts that only connect do not keep
// members out, whose proof takes a few messages.
type door struct {
	net.Listener
	config *tls.Config
	log    *slog.Logger

	proven chan net.Conn
	ended  chan struct{} // closed with the listener, of which err is then the reason
	err    error

	mu      sync.Mutex
	waiting []caller // in the order of their arrival
}

// caller is a connection without proof.
type caller struct {
	net.Conn
	place netip.Prefix
}

// Listener lets members alone in: those whose key the head knows when a connection begins.
func (h *Head) Listener(l net.Listener, key ed25519.PrivateKey) (net.Listener, error) {
	c, err := config(key, h.Members.knows)
	if err != nil {
		return nil, err
	}
	d := &door{Listener: l, config: c, log: h.Log, proven: make(chan net.Conn), ended: make(chan struct{})}
	go d.serve()
	return d, nil
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	select {
	case conn := <-d.proven:
		return conn, nil
	case <-d.ended:
		return nil, d.err
	}
}

// serve accepts connections until the listener is closed.
func (d *door) serve() {
	for wait := time.Millisecond; ; {
		conn, err := d.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			d.err = err
			close(d.ended)
			return
		}
		if err != nil { // such as too many open files
			d.log.Warn("cannot accept connections of members", "err", err)
			time.Sleep(wait)
			wait = min(2*wait, time.Second)
			continue
		}
		wait = time.Millisecond
		c := caller{conn, placeOf(conn.RemoteAddr())}
		d.enter(c)
		go d.prove(c)
	}
}

// prove lets the other side of a connection prove its key.
func (d *door) prove(c caller) {
	ctx, cancel := context.WithTimeout(context.Background(), proofWithin)
	defer cancel()
	secure := tls.Server(c.Conn, d.config)
	err := secure.HandshakeContext(ctx)
	d.leave(c)
	if err != nil {
		_ = c.Close()
		return
	}
	select {
	case d.proven <- secure:
	case <-d.ended:
		_ = c.Close()
	}
}

// enter counts a connection, and makes room for it where there are too many: the connection that has waited the longest
// is closed, of the same place, or of a place with the most.
func (d *door) enter(c caller) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := map[netip.Prefix]int{}
	for _, w := range d.waiting {
		of[w.place]++
	}
	gives := c.place
	if of[c.place] < maxOfPlace {
		for _, w := range d.waiting {
			if of[w.place] > of[gives] {
				gives = w.place
			}
		}
	}
	if of[c.place] >= maxOfPlace || len(d.waiting) >= maxWaiting {
		i := slices.IndexFunc(d.waiting, func(w caller) bool { return w.place == gives })
		_ = d.waiting[i].Close()
		d.waiting = slices.Delete(d.waiting, i, i+1)
	}
	d.waiting = append(d.waiting, c)
}

// leave is called when a connection has its proof, or has ended without.
func (d *door) leave(c caller) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.waiting, c); i >= 0 {
		d.waiting = slices.Delete(d.waiting, i, i+1)
	}
}

// placeOf is the IPv4 address, or the /64 network of IPv6 of which a host has all addresses.
func placeOf(a net.Addr) netip.Prefix {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{} // no TCP: all such connections are of one place
	}
	ip := at.Addr().Unmap().WithZone("")
	place, _ := ip.Prefix(min(ip.BitLen(), 64)) // never fails
	return place
}
