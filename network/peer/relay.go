package peer

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/autorelay"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/multiformats/go-multiaddr"
)

// What a relay does for each member: libp2p's defaults end a connection after 128 KiB, and allow eight members behind
// one address.
const (
	relayTime    = 30 * time.Minute // of one connection
	relayBytes   = 4 << 30          // of one connection, each way
	relayMembers = 1024
	relayPerHost = 64 // members behind one IP address
	relayBuffer  = 64 << 10
)

// directWait is how long bulk waits for a direct connection to take the place of a new one through a relay.
const directWait = 5 * time.Second

// directAgain is the age at which a connection that has stayed relayed is made anew.
const directAgain = 10 * time.Second

// offering are the options of a host that relays between others.
func offering(member func(ID) bool) []libp2p.Option {
	resources := relay.DefaultResources()
	resources.Limit = &relay.RelayLimit{Duration: relayTime, Data: relayBytes}
	resources.MaxReservations, resources.MaxCircuits, resources.BufferSize = relayMembers, 64, relayBuffer
	resources.MaxReservationsPerIP, resources.MaxReservationsPerASN = relayPerHost, relayMembers
	return []libp2p.Option{
		libp2p.ForceReachabilityPublic(),
		libp2p.EnableRelayService(relay.WithResources(resources), relay.WithACL(members(member)),
			// private networks have relays, too
			relay.WithReservationAddressFilter(func(multiaddr.Multiaddr) bool { return true })),
	}
}

// members are who may use a relay: one that may reserve is reached by everybody.
type members func(ID) bool

func (m members) AllowReserve(id p2p.ID, _ multiaddr.Multiaddr) bool { return m(id) }

func (m members) AllowConnect(_ p2p.ID, _ multiaddr.Multiaddr, to p2p.ID) bool { return m(to) }

// behind are the options of a host that others cannot dial: it keeps a reservation at two relays, and when a connection
// comes in through one, both ends try to make a direct one (DCUtR).
func behind(self ID, relays func() []string) []libp2p.Option {
	source := func(_ context.Context, n int) <-chan p2p.AddrInfo {
		list := others(self, relays())
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] }) // not all of them may be relays
		found := make(chan p2p.AddrInfo, n)
		for _, info := range list[:min(n, len(list))] {
			found <- info
		}
		close(found)
		return found
	}
	return []libp2p.Option{
		libp2p.ForceReachabilityPrivate(),
		libp2p.EnableAutoRelayWithPeerSource(source, autorelay.WithBootDelay(0), autorelay.WithNumRelays(2),
			autorelay.WithMinCandidates(1), autorelay.WithMinInterval(time.Second), autorelay.WithBackoff(5*time.Second)),
	}
}

// Watch calls told with the addresses of the host, at once and whenever they change, until the context ends or told
// returns an error, which is returned.
func (h *Host) Watch(ctx context.Context, told func(addrs []string) error) error {
	changes, err := h.host.EventBus().Subscribe(new(event.EvtLocalAddressesUpdated), eventbus.Name("starling"))
	if err != nil {
		return err
	}
	defer changes.Close()
	for {
		if err := told(h.Addrs()); err != nil {
			return err
		}
		select {
		case _, ok := <-changes.Out():
			if !ok {
				return ErrClosed
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-h.ctx.Done():
			return ErrClosed
		}
	}
}

// stream opens a stream for bulk. Over a relay it goes only if the connection has not become a direct one in time.
func (h *Host) stream(ctx context.Context, id ID) (network.Stream, error) {
	if left := h.directSoon(ctx, id); left > 0 {
		direct, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		s, err := h.host.NewStream(network.WithNoDial(direct, "the other end makes the direct connection"), id, Protocol)
		if err == nil {
			return s, nil
		}
	}
	return h.host.NewStream(network.WithAllowLimitedConn(ctx, "bulk"), id, Protocol)
}

// directSoon returns for how long a direct connection to a peer is worth waiting for; 0 if there is one, or none is to
// be had. The ends try when a connection comes in through a relay, and only then: one that has stayed relayed, because
// the other end was not ready, is made anew unless blobs move over it.
func (h *Host) directSoon(ctx context.Context, id ID) time.Duration {
	net := h.host.Network()
	relayed := net.ConnsToPeer(id)
	if net.Connectedness(id) != network.Limited || len(relayed) == 0 {
		return 0
	}
	age := time.Since(relayed[0].Stat().Opened)
	inUse := slices.ContainsFunc(relayed, func(c network.Conn) bool {
		return slices.ContainsFunc(c.GetStreams(), func(s network.Stream) bool { return s.Protocol() == Protocol })
	})
	if age < directAgain || inUse {
		return directWait - age
	}
	_ = net.ClosePeer(id)
	if h.fetcher.reach(ctx, id) != nil {
		return 0 // whoever opens the stream finds out why
	}
	return directWait
}
