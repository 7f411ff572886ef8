// Package relay reaches hosts that others cannot dial: through a relay at first, and over a direct connection as soon
// as the two ends have made one. It opens streams and does not know what they carry.
package relay

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/autorelay"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/multiformats/go-multiaddr"

	"github.com/starling-network/starling/network/peer/address"
)

// Limits of a relay for each member: libp2p's defaults end a connection after 128 KiB, and allow eight members behind
// one address.
const (
	relayTime    = 30 * time.Minute // of one connection
	relayBytes   = 4 << 30          // of one connection, each way
	relayMembers = 1024
	relayPerHost = 64 // members behind one IP address
	relayBuffer  = 64 << 10
)

// Offering are the options of a host that relays between others.
func Offering(member func(peer.ID) bool) []libp2p.Option {
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
type members func(peer.ID) bool

func (m members) AllowReserve(id peer.ID, _ multiaddr.Multiaddr) bool { return m(id) }

func (m members) AllowConnect(_ peer.ID, _ multiaddr.Multiaddr, to peer.ID) bool { return m(to) }

// Behind are the options of a host that others cannot dial: it keeps a reservation at two relays, and when a connection
// comes in through one, both ends try to make a direct one (DCUtR).
func Behind(self peer.ID, relays func() []string) []libp2p.Option {
	source := func(_ context.Context, n int) <-chan peer.AddrInfo {
		list := address.Others(self, relays())
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] }) // not all of them may be relays
		found := make(chan peer.AddrInfo, n)
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
