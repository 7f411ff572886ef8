package peer

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"golang.org/x/time/rate"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer/pace"
	"github.com/starling-network/starling/network/tally"
)

// When a peer is measured.
const (
	pingBusy = 20 * time.Millisecond // while bulk goes to it
	pingIdle = 15 * time.Second
	pingWait = 10 * time.Second // for an answer
)

// Link is what is known about the way to a peer.
type Link struct {
	Peer      ID
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
func (h *Host) Peers() []Link {
	all := h.links.list()
	list := make([]Link, len(all))
	for i, l := range all {
		list[i] = l.snapshot()
		for _, c := range h.host.Network().ConnsToPeer(l.peer) {
			list[i].Addr, list[i].Relayed = c.RemoteMultiaddr().String(), c.Stat().Limited
		}
	}
	slices.SortFunc(list, func(a, b Link) int { return cmp.Compare(a.Peer, b.Peer) })
	return list
}

// link is the traffic with a peer, and its measurement.
type link struct {
	host           *Host
	peer           ID
	sent, received atomic.Uint64
	limiter        *rate.Limiter // of bulk to the peer
	busy           chan struct{} // has an element when bulk is sent
	watching       atomic.Bool

	mu        sync.Mutex
	hold      chan struct{} // until it is closed no bulk is sent; nil: bulk is sent
	pace      *pace.Pace
	roundTrip time.Duration
	download  meter
	delivered tally.Peer // of the host's line
}

// maxLinks bounds what is remembered; those without a connection go first.
const maxLinks = 1024

// links are those of a host to its peers.
type links struct {
	host *Host

	mu sync.Mutex
	of map[ID]*link
}

func (k *links) list() []*link {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.of))
}

// to returns the link to a peer, and measures it from now on.
func (k *links) to(id ID) *link {
	k.mu.Lock()
	l, ok := k.of[id]
	if !ok {
		if len(k.of) >= maxLinks {
			k.forget()
		}
		l = &link{host: k.host, peer: id, limiter: rate.NewLimiter(rate.Inf, 0), busy: make(chan struct{}, 1),
			pace: pace.New()}
		k.of[id] = l
	}
	k.mu.Unlock()
	l.measure()
	return l
}

// forget drops links to peers that are not connected.
func (k *links) forget() {
	for id := range k.of {
		if k.host.host.Network().Connectedness(id) == network.NotConnected {
			delete(k.of, id)
		}
	}
}

func (l *link) snapshot() Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Link{
		Peer: l.peer, RoundTrip: l.roundTrip, Shortest: l.pace.Base(), Pace: l.pace.Rate, Download: l.download.rate,
		Sent: l.sent.Load(), Received: l.received.Load(), Delivered: l.host.line.Read(&l.delivered),
	}
}

// downloadRate is in bytes a second; 0 if it is not known.
func (l *link) downloadRate() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.download.rate
}

// waits says that somebody begins, or ends, to wait for bulk from the peer.
func (l *link) waits(begins bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if begins {
		l.download.begin(time.Now())
		l.host.line.Begin(&l.delivered, time.Since(l.host.began))
	} else {
		l.download.end(time.Now())
		l.host.line.End(&l.delivered, time.Since(l.host.began), l.pace.Base())
	}
}

// came counts bulk that came for who waits.
func (l *link) came(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.download.add(n, time.Now())
	l.host.line.Add(&l.delivered, n)
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

// Limits of a measurement without bulk.
const (
	drainMessages  = 100 // until what is on the way has arrived
	unloadedSample = 3   // of which the fastest counts
)

// unloaded holds bulk back until what was sent has arrived, and then measures the round trip of messages.
func (l *link) unloaded(c *Control) (at, trip time.Duration, err error) {
	hold := make(chan struct{})
	l.mu.Lock()
	l.hold = hold
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.hold = nil
		l.mu.Unlock()
		close(hold)
	}()
	for range drainMessages {
		sent := l.sent.Load()
		e, err := c.ping(l.host.ctx)
		if err != nil {
			return 0, 0, err
		}
		if e.Arrived >= sent {
			break
		}
	}
	for n := range unloadedSample {
		e, err := c.ping(l.host.ctx)
		if err != nil {
			return 0, 0, err
		}
		if at = e.At; n == 0 || e.Trip < trip {
			trip = e.Trip
		}
	}
	return at, trip, nil
}

// measure sends control messages to the peer until the connection, or the host, is gone. A peer that does not answer
// them is not paced.
func (l *link) measure() {
	if l.watching.Swap(true) {
		return
	}
	if !l.host.begin() {
		return
	}
	go func() {
		defer l.host.serving.Done()
		defer l.watching.Store(false)
		c, err := l.host.control(l.host.ctx, l.peer)
		if err != nil {
			return
		}
		defer c.Close()
		for {
			l.mu.Lock()
			l.limiter.SetBurst(max(pieceBytes, int(l.pace.Rate*paceBurst.Seconds())))
			l.limiter.SetLimit(rate.Limit(l.pace.Rate))
			starting, doubts := l.pace.Starting, l.pace.Unsure()
			l.mu.Unlock()
			if doubts {
				at, trip, err := l.unloaded(c)
				if err != nil {
					l.limiter.SetLimit(rate.Inf)
					return
				}
				l.mu.Lock()
				l.pace.Unloaded(at, trip)
				l.mu.Unlock()
				continue
			}
			sent := l.sent.Load()
			e, err := c.ping(l.host.ctx)
			if err != nil {
				l.limiter.SetLimit(rate.Inf)
				return
			}
			e.Sent = sent
			l.mu.Lock()
			l.pace.Sample(e)
			l.roundTrip = e.Trip
			l.mu.Unlock()
			if !l.pause(starting) {
				return
			}
		}
	}()
}

// paceBurst is how long bulk may go on beyond its pace after a pause.
const paceBurst = 2 * time.Millisecond

// pause waits until the next control message is due: at once while the pace is searched, soon while bulk is sent.
func (l *link) pause(starting bool) bool {
	idle := time.NewTimer(pingIdle)
	defer idle.Stop()
	select {
	case <-l.busy:
	case <-idle.C:
		return true
	case <-l.host.ctx.Done():
		return false
	}
	wait := pingBusy
	if starting {
		wait = time.Millisecond
	}
	soon := time.NewTimer(wait)
	defer soon.Stop()
	select {
	case <-soon.C:
		return true
	case <-l.host.ctx.Done():
		return false
	}
}

// meter measures the rate of what comes in while somebody waits for it.
type meter struct {
	rate    float64 // bytes a second: a moving average
	waiting int
	since   time.Time     // that somebody has been waiting
	waited  time.Duration // before that, since the last measurement
	bytes   uint64        // since the last measurement
}

// meterWindow is the time of waiting that makes a measurement, and meterWeight its weight among the earlier ones.
const (
	meterWindow = 200 * time.Millisecond
	meterWeight = 0.3
)

// begin and end enclose the time in which somebody waits.
func (m *meter) begin(now time.Time) {
	if m.waiting++; m.waiting == 1 {
		m.since = now
	}
}

func (m *meter) end(now time.Time) {
	if m.waiting--; m.waiting == 0 {
		m.waited += now.Sub(m.since)
		m.measure(now)
	}
}

// add counts bytes that came in.
func (m *meter) add(n int, now time.Time) {
	m.bytes += uint64(n)
	m.measure(now)
}

func (m *meter) measure(now time.Time) {
	waited := m.waited
	if m.waiting > 0 {
		waited += now.Sub(m.since)
	}
	if waited < meterWindow && (m.rate > 0 || m.waiting > 0) || waited == 0 {
		return
	}
	measured := float64(m.bytes) / waited.Seconds()
	if m.rate == 0 {
		m.rate = measured
	}
	m.rate += meterWeight * (measured - m.rate)
	m.bytes, m.waited, m.since = 0, 0, now
}

// byRate orders peers for a download: the fastest first, those that are not known before those known to be slower than
// most, and in the given order among equals.
func (k *links) byRate(peers []ID) {
	rates := make(map[ID]float64, len(peers))
	var known []float64
	k.mu.Lock()
	for _, id := range peers {
		if l := k.of[id]; l != nil {
			if r := l.downloadRate(); r > 0 {
				rates[id] = r
				known = append(known, r)
			}
		}
	}
	k.mu.Unlock()
	if len(known) == 0 {
		return
	}
	slices.Sort(known)
	middle := known[len(known)/2]
	for _, id := range peers {
		if rates[id] == 0 {
			rates[id] = middle
		}
	}
	slices.SortStableFunc(peers, func(a, b ID) int { return cmp.Compare(rates[b], rates[a]) })
}

// spanTime is how long a peer should take for a span: then the slowest do not hold much when the others are done.
const spanTime = 500 * time.Millisecond

// width is the number of leaves to ask a peer for at a time, by its measured rate.
func (k *links) width(id ID) int {
	k.mu.Lock()
	l := k.of[id]
	k.mu.Unlock()
	if l == nil {
		return maxSpan
	}
	rate := l.downloadRate()
	if rate == 0 {
		return maxSpan
	}
	return max(1, int(rate*spanTime.Seconds()/streamsPerPeer/blob.LeafBytes))
}
