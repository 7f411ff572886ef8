// Package discovery is a host's part in the network's own distributed hash table, which holds the addresses of peers
// and the providers of blobs. It fetches no blob.
package discovery

import (
	"context"
	"errors"
	"time"

	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer/address"
	"github.com/starling-network/starling/network/peer/admission"
)

// Limits of a search.
const (
	maxProviders = 16
	searchTime   = 10 * time.Second
)

// ErrNoDiscovery is returned by a host that takes no part.
var ErrNoDiscovery = errors.New("peer: host takes no part in discovery")

// Table is a host's part in the hash table. A nil Table takes no part.
type Table struct {
	*dht.IpfsDHT
	self peer.ID
}

// New makes a host a node of the network's own distributed hash table (Kademlia under /starling/kad/1.0.0), which holds
// the addresses of peers and the providers of blobs, and no other values. A host that others cannot dial (reachable is
// false) asks only. known returns addresses of some peers, through which the host joins; records of strangers, as
// standing says, are not kept.
func New(ctx context.Context, h host.Host, reachable bool, known func() []string,
	standing func(peer.ID) admission.Standing) (*Table, error) {
	mode := dht.ModeServer
	if !reachable {
		mode = dht.ModeClient
	}
	bootstrap := func() []peer.AddrInfo { return address.Others(h.ID(), known()) }
	table, err := dht.New(ctx, h, dht.ProtocolPrefix("/starling"), dht.Mode(mode), dht.DisableValues(),
		dht.BootstrapPeersFunc(bootstrap),
		dht.ProviderStore(newProviders(h.ID(), standing)))
	if err != nil {
		return nil, err
	}
	return &Table{table, h.ID()}, nil
}

// Announce tells others that this host provides a blob. It is forgotten after two days.
func (t *Table) Announce(ctx context.Context, c blob.CID) error {
	if t == nil {
		return ErrNoDiscovery
	}
	return t.Provide(ctx, c, true)
}

// Providers searches for hosts that announced a blob, and returns their addresses.
func (t *Table) Providers(ctx context.Context, c blob.CID) ([]string, error) {
	if t == nil {
		return nil, ErrNoDiscovery
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	var list []string
	for info := range t.FindProvidersAsync(ctx, c, maxProviders) {
		if info.ID == t.self {
			continue
		}
		addrs, err := peer.AddrInfoToP2pAddrs(&info)
		if err != nil {
			continue
		}
		for _, a := range addrs {
			list = append(list, a.String())
		}
	}
	return list, nil
}
