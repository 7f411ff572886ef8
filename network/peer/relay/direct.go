package relay

import (
	"context"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// directWait is how long bulk waits for a direct connection to take the place of a new one through a relay.
const directWait = 5 * time.Second

// directAgain is the age at which a connection that has stayed relayed is closed and made again.
const directAgain = 10 * time.Second

// OpenStream opens a stream of a protocol for bulk. Over a relay it goes only if the connection has not become a direct
// one in time. Connect connects to the peer, over a relay as well.
func OpenStream(ctx context.Context, h host.Host, id peer.ID, of protocol.ID,
	connect func(context.Context, peer.ID) error) (network.Stream, error) {
	if left := directSoon(ctx, h, id, of, connect); left > 0 {
		direct, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		s, err := h.NewStream(network.WithNoDial(direct, "the other end makes the direct connection"), id, of)
		if err == nil {
			return s, nil
		}
	}
	return h.NewStream(network.WithAllowLimitedConn(ctx, "bulk"), id, of)
}

// directSoon returns for how long a direct connection to a peer is worth waiting for; 0 if there is one, or none is to
// be had. The ends try when a connection comes in through a relay, and only then: one that has stayed relayed, because
// the other end was not ready, is closed and made again unless blobs move over it.
func directSoon(ctx context.Context, h host.Host, id peer.ID, of protocol.ID,
	connect func(context.Context, peer.ID) error) time.Duration {
	net := h.Network()
	relayed := net.ConnsToPeer(id)
	if net.Connectedness(id) != network.Limited || len(relayed) == 0 {
		return 0
	}
	age := time.Since(relayed[0].Stat().Opened)
	inUse := slices.ContainsFunc(relayed, func(c network.Conn) bool {
		return slices.ContainsFunc(c.GetStreams(), func(s network.Stream) bool { return s.Protocol() == of })
	})
	if age < directAgain || inUse {
		return directWait - age
	}
	_ = net.ClosePeer(id)
	if connect(ctx, id) != nil {
		return 0 // opening the stream fails with the reason
	}
	return directWait
}
