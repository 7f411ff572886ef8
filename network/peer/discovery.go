package peer

import (
	"context"
	"errors"
	"slices"
	"time"

	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/host"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/starling-network/starling/network/blob"
)

// Limits of a search.
const (
	maxProviders = 16
	searchTime   = 10 * time.Second
)

// ErrNoDiscovery is returned by a host without Config.Known.
var ErrNoDiscovery = errors.New("peer: host takes no part in discovery")

// discover makes a host a node of the network's own distributed hash table (Kademlia under /starling/kad/1.0.0), which holds
// where peers are and who provides blobs, and no other values. A host that others cannot dial asks only.
func discover(ctx context.Context, h host.Host, c Config) (*dht.IpfsDHT, error) {
	mode := dht.ModeServer
	if c.Relays != nil {
		mode = dht.ModeClient
	}
	known := func() []p2p.AddrInfo { return others(h.ID(), c.Known()) }
	return dht.New(ctx, h, dht.ProtocolPrefix("/starling"), dht.Mode(mode), dht.DisableValues(), dht.BootstrapPeersFunc(known))
}

// others are the peers at the given addresses, each once, without the one that asks.
func others(self ID, addrs []string) (list []p2p.AddrInfo) {
	for _, addr := range addrs {
		info, err := parseAddr(addr)
		if err != nil || info.ID == self {
			continue
		}
		i := slices.IndexFunc(list, func(other p2p.AddrInfo) bool { return other.ID == info.ID })
		if i < 0 {
			list = append(list, info)
			continue
		}
		list[i].Addrs = append(list[i].Addrs, info.Addrs...)
	}
	return list
}

// Announce tells others that this host provides a blob. It is forgotten after two days.
func (h *Host) Announce(ctx context.Context, c blob.CID) error {
	if h.dht == nil {
		return ErrNoDiscovery
	}
	return h.dht.Provide(ctx, c, true)
}

// Providers searches for hosts that announced a blob, and returns their addresses.
func (h *Host) Providers(ctx context.Context, c blob.CID) ([]string, error) {
	if h.dht == nil {
		return nil, ErrNoDiscovery
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	var list []string
	for info := range h.dht.FindProvidersAsync(ctx, c, maxProviders) {
		if info.ID == h.ID() {
			continue
		}
		addrs, err := p2p.AddrInfoToP2pAddrs(&info)
		if err != nil {
			continue
		}
		for _, a := range addrs {
			list = append(list, a.String())
		}
	}
	return list, nil
}

// widen searches for providers of a blob that the given holders did not give, and tries them.
func (h *Host) widen(ctx context.Context, c blob.CID, from []string, err error) error {
	if failed := (*FetchError)(nil); h.dht == nil || !errors.As(err, &failed) {
		return err
	}
	found, e := h.Providers(ctx, c)
	found = slices.DeleteFunc(found, func(a string) bool { return slices.Contains(from, a) })
	if e != nil || len(found) == 0 {
		return err
	}
	if h.download(ctx, c, found) != nil {
		return err
	}
	return nil
}
