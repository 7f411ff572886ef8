// Package link is the way from a host to each of its peers: it counts the bytes, measures round trips and rates with
// control messages, and paces bulk so that control messages do not wait behind it. It does not know what the bulk is.
package link

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"

	"github.com/starling-network/starling/network/peer/lifetime"
	"github.com/starling-network/starling/network/peer/pace"
	"github.com/starling-network/starling/network/tally"
)

// When a peer is measured.
const (
	pingBusy = 20 * time.Millisecond // while bulk goes to it
	pingIdle = 15 * time.Second
	pingWait = 10 * time.Second // for an answer
)

// State is what is known about the way to a peer.
type State struct {
	Peer      peer.ID
	Addr      string        // of the connection; empty if there is none now
	Relayed   bool          // the connection goes through a relay
	RoundTrip time.Duration // of the last control message; 0: none was answered
	Shortest  time.Duration // round trip of the last minutes
	Pace      float64       // bytes a second at which bulk is sent to it at most
	Download  float64       // bytes a second that it delivers while it is asked for bulk; 0: not known
	Sent      uint64        // bytes of bulk, framing included
	Received  uint64
	Delivered tally.Reading // what it gave since it was last remembered, for the reports on chain
}

// Peers returns what is known about the peers that bulk or control messages went to or came from, sorted by peer.
func (t *Table) Peers() []State {
	all := t.list()
	list := make([]State, len(all))
	for i, l := range all {
		list[i] = l.snapshot()
		for _, c := range t.host.Network().ConnsToPeer(l.peer) {
			list[i].Addr, list[i].Relayed = c.RemoteMultiaddr().String(), c.Stat().Limited
		}
	}
	slices.SortFunc(list, func(a, b State) int { return cmp.Compare(a.Peer, b.Peer) })
	return list
}

// link is the traffic with a peer, and its measurement.
type link struct {
	table          *Table
	peer           peer.ID
	sent, received atomic.Uint64
	limiter        *rate.Limiter // of bulk to the peer
	busy           chan struct{} // has an element when bulk is sent
	watching       atomic.Bool

	mu        sync.Mutex
	hold      chan struct{} // until it is closed no bulk is sent; nil: bulk is sent
	pace      *pace.Pace
	roundTrip time.Duration
	download  meter
	delivered tally.Peer // of the table's line
}

// maxLinks bounds what is remembered; those without a connection go first.
const maxLinks = 1024

// Table holds the links of a host to its peers. Its methods may be called concurrently.
type Table struct {
	host     host.Host
	life     *lifetime.Lifetime
	stall    time.Duration
	sent     atomic.Uint64
	received atomic.Uint64
	began    time.Time
	line     tally.Line // over which peers deliver

	mu sync.Mutex
	of map[peer.ID]*link
}

// NewTable returns the links of a host with this lifetime. A stream that makes no progress for the time stall fails.
func NewTable(h host.Host, life *lifetime.Lifetime, stall time.Duration) *Table {
	return &Table{host: h, life: life, stall: stall, began: time.Now(), of: map[peer.ID]*link{}}
}

// Traffic returns the bytes that went over the table's streams, framing included, since the host started.
func (t *Table) Traffic() (sent, received uint64) { return t.sent.Load(), t.received.Load() }

// Rate is the rate at which a peer delivers while it is asked for bulk, in bytes a second; 0 if it is not known.
func (t *Table) Rate(id peer.ID) float64 {
	t.mu.Lock()
	l := t.of[id]
	t.mu.Unlock()
	if l == nil {
		return 0
	}
	return l.downloadRate()
}

func (t *Table) list() []*link {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.of))
}

// to returns the link to a peer, and measures it from now on.
func (t *Table) to(id peer.ID) *link {
	t.mu.Lock()
	l, ok := t.of[id]
	if !ok {
		if len(t.of) >= maxLinks {
			t.forget()
		}
		l = &link{table: t, peer: id, limiter: rate.NewLimiter(rate.Inf, 0), busy: make(chan struct{}, 1),
			pace: pace.New()}
		t.of[id] = l
	}
	t.mu.Unlock()
	l.measure()
	return l
}

// forget drops links to peers that are not connected.
func (t *Table) forget() {
	for id := range t.of {
		if t.host.Network().Connectedness(id) == network.NotConnected {
			delete(t.of, id)
		}
	}
}

func (l *link) snapshot() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return State{
		Peer: l.peer, RoundTrip: l.roundTrip, Shortest: l.pace.Base(), Pace: l.pace.Rate, Download: l.download.rate,
		Sent: l.sent.Load(), Received: l.received.Load(), Delivered: l.table.line.Read(&l.delivered),
	}
}

// downloadRate is in bytes a second; 0 if it is not known.
func (l *link) downloadRate() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.download.rate
}

// waits says that a caller begins, or ends, to wait for bulk from the peer.
func (l *link) waits(begins bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if begins {
		l.download.begin(time.Now())
		l.table.line.Begin(&l.delivered, time.Since(l.table.began))
	} else {
		l.download.end(time.Now())
		l.table.line.End(&l.delivered, time.Since(l.table.began), l.pace.Base())
	}
}

// came counts bulk that came for a caller that waits.
func (l *link) came(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.download.add(n, time.Now())
	l.table.line.Add(&l.delivered, n)
}

// await returns when the pace allows n more bytes to the peer.
func (l *link) await(ctx context.Context, n int) error {
	select {
	case l.busy <- struct{}{}:
	default:
	}
	l.mu.Lock()
	hold := l.hold
	l.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return l.limiter.WaitN(ctx, n)
}
