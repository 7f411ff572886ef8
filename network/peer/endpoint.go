package peer

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/routing"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/multiformats/go-multiaddr"

	"github.com/starling-network/starling/network/peer/channel"
	"github.com/starling-network/starling/network/peer/discovery"
	"github.com/starling-network/starling/network/peer/link"
	"github.com/starling-network/starling/network/peer/message"
	"github.com/starling-network/starling/network/peer/relay"
	"github.com/starling-network/starling/network/peer/secure"
	"github.com/starling-network/starling/network/peer/wire"
)

// Connections kept when there are too many, and where pruning starts.
const (
	connectionsLow  = 256
	connectionsHigh = 384
)

// listen starts a libp2p host with bounded resources, and its part in discovery, if it has one.
func listen(ctx context.Context, c Config) (_ host.Host, table *discovery.Table, err error) {
	resources, err := limits()
	if err != nil {
		return nil, nil, err
	}
	connections, err := connmgr.NewConnManager(connectionsLow, connectionsHigh, connmgr.WithGracePeriod(30*time.Second))
	if err != nil {
		return nil, nil, err
	}
	options := []libp2p.Option{
		libp2p.Identity(c.Key),
		libp2p.ListenAddrStrings(c.Listen...),
		// In order of preference: processors have instructions for the cipher of TLS, and none for that of Noise.
		libp2p.Security(libp2ptls.ID, secure.New),
		libp2p.Security(noise.ID, noise.New),
		libp2p.ResourceManager(resources),
		libp2p.ConnectionManager(connections),
		libp2p.QUICReuse(quicreuse.NewConnManager, c.sockets...),
		libp2p.SwarmOpts(swarm.WithDialRanker(ranker(c))),
		libp2p.EnableRelay(), // to dial those that are behind one
		libp2p.EnableHolePunching(),
		libp2p.DisableMetrics(),
		libp2p.Ping(false),
		libp2p.UserAgent("starling"),
	}
	if c.Through != "" {
		options = append(options, libp2p.Transport(tcp.NewTCPTransport, tcp.WithDialerForAddr(through(c.Through).dialer)))
	} else {
		options = append(options, libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport()),
			libp2p.Transport(quic.NewTransport))
	}
	if c.Relay != nil {
		options = append(options, relay.Offering(c.Relay)...)
	}
	if c.Relays != nil {
		self, err := p2p.IDFromPrivateKey(c.Key)
		if err != nil {
			return nil, nil, err
		}
		options = append(options, relay.Behind(self, c.Relays)...)
	}
	if c.Known != nil {
		options = append(options, libp2p.Routing(func(h host.Host) (routing.PeerRouting, error) {
			var err error
			table, err = discovery.New(ctx, h, c.Relays == nil, c.Known, c.Standing)
			return table, err
		}))
	}
	h, err := libp2p.New(options...)
	return h, table, err
}

// limits bounds what all peers together, and each of them, can make us hold.
func limits() (network.ResourceManager, error) {
	scaling := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&scaling)
	partial := rcmgr.PartialLimitConfig{
		System: rcmgr.ResourceLimits{
			Conns: 4096, ConnsInbound: 3072, ConnsOutbound: 1024,
			Streams: 32768, StreamsInbound: 16384, StreamsOutbound: 16384,
			FD: 8192, Memory: 2 << 30,
		},
		Protocol: map[protocol.ID]rcmgr.ResourceLimits{
			wire.Protocol:        {Streams: 8192, StreamsInbound: 4096, StreamsOutbound: 4096, Memory: 1 << 30},
			link.ControlProtocol: {Streams: 2048, StreamsInbound: 1024, StreamsOutbound: 1024, Memory: 16 << 20},
			message.Weights:      {Streams: 512, StreamsInbound: 256, StreamsOutbound: 256, Memory: 16 << 20},
			message.Keys:         {Streams: 512, StreamsInbound: 256, StreamsOutbound: 256, Memory: 16 << 20},
			channel.Protocol:     {Streams: 2048, StreamsInbound: 1024, StreamsOutbound: 1024, Memory: 512 << 20},
		},
		ProtocolPeer: map[protocol.ID]rcmgr.ResourceLimits{
			wire.Protocol:        {Streams: 32, StreamsInbound: 16, StreamsOutbound: 16, Memory: 64 << 20},
			link.ControlProtocol: {Streams: 8, StreamsInbound: 4, StreamsOutbound: 4, Memory: 1 << 20},
			message.Weights:      {Streams: 16, StreamsInbound: 8, StreamsOutbound: 8, Memory: 1 << 20},
			message.Keys:         {Streams: 16, StreamsInbound: 8, StreamsOutbound: 8, Memory: 1 << 20},
			channel.Protocol:     {Streams: 128, StreamsInbound: 64, StreamsOutbound: 64, Memory: 128 << 20},
		},
	}
	perAddress := rcmgr.WithLimitPerSubnet(
		[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: 128}},
		[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: 128}},
	)
	return rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(partial.Build(scaling.AutoScale())), perAddress,
		rcmgr.WithMetricsDisabled())
}

// ranker is the order in which addresses of a peer are dialled. A host behind a router dials over QUIC first, which
// leaves from the port that it listens on: others see there where a direct connection may be made to it. A connection
// over TCP leaves from any port.
func ranker(c Config) network.DialRanker {
	if c.Relays != nil {
		return swarm.DefaultDialRanker
	}
	return tcpFirst
}

// quicDelay is the head start of TCP.
const quicDelay = 250 * time.Millisecond

// tcpFirst dials TCP addresses before those of other transports, which get their usual order after a delay: a byte
// over TCP costs about half the processor time of one over QUIC, and blobs are most of our bytes.
func tcpFirst(addrs []multiaddr.Multiaddr) []network.AddrDelay {
	ranked := swarm.DefaultDialRanker(addrs)
	anyTCP := false
	for i := range ranked {
		if _, err := ranked[i].Addr.ValueForProtocol(multiaddr.P_TCP); err == nil {
			ranked[i].Delay, anyTCP = 0, true
		}
	}
	for i := range ranked {
		if _, err := ranked[i].Addr.ValueForProtocol(multiaddr.P_TCP); err != nil && anyTCP {
			ranked[i].Delay += quicDelay
		}
	}
	return ranked
}
