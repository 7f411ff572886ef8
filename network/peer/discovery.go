package peer

import (
	"context"
	"errors"
	"maps"
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

// discover makes a host a node of the network's own distributed hash table (Kademlia under /starling/kad/1.0.0), which
// holds where peers are and who provides blobs, and no other values. A host that others cannot dial asks only.
func discover(ctx context.Context, h host.Host, c Config) (*dht.IpfsDHT, error) {
	mode := dht.ModeServer
	if c.Relays != nil {
		mode = dht.ModeClient
	}
	known := func() []p2p.AddrInfo { return others(h.ID(), c.Known()) }
	return dht.New(ctx, h, dht.ProtocolPrefix("/starling"), dht.Mode(mode), dht.DisableValues(),
		dht.BootstrapPeersFunc(known),
		dht.ProviderStore(newProviders(h.ID(), c.Standing)))
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

// How an Announcer goes about it.
const (
	announceAgain = 12 * time.Hour // well before what was announced is forgotten
	announceRetry = 5 * time.Minute
	announceBatch = 16               // blobs of one call
	announceMost  = 1 << 14          // blobs that are announced at all
	announceTime  = 10 * time.Second // of one blob
)

// Announcer keeps announced what a host has: every blob once, and again before it is forgotten.
type Announcer struct {
	provide func(ctx context.Context, c blob.CID) error
	next    map[blob.CID]time.Time // when it is due
}

// NewAnnouncer returns an announcer that has announced nothing yet.
func NewAnnouncer(h *Host) *Announcer { return newAnnouncer(h.Announce) }

func newAnnouncer(provide func(context.Context, blob.CID) error) *Announcer {
	return &Announcer{provide: provide, next: map[blob.CID]time.Time{}}
}

// Announce announces what is due of the blobs that the host keeps at a time by the caller's clock: a few of them, so
// that it ends soon, in the order given. It is called again and again. Blobs that are not given any more are forgotten.
// The error is that of the first blob that could not be announced, which ends the call; it is tried again later.
func (a *Announcer) Announce(ctx context.Context, kept []blob.CID, now time.Time) error {
	kept = kept[:min(len(kept), announceMost)]
	given := make(map[blob.CID]bool, len(kept))
	for _, c := range kept {
		given[c] = true
	}
	maps.DeleteFunc(a.next, func(c blob.CID, _ time.Time) bool { return !given[c] })
	done := 0
	for _, c := range kept {
		if now.Before(a.next[c]) {
			continue
		}
		if done++; done > announceBatch {
			return nil
		}
		trying, cancel := context.WithTimeout(ctx, announceTime)
		err := a.provide(trying, c)
		cancel()
		if err != nil {
			a.next[c] = now.Add(announceRetry)
			return err
		}
		a.next[c] = now.Add(announceAgain)
	}
	return nil
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

// widen searches for providers of a blob of at most so many bytes that the given holders did not give, and tries them.
func (h *fetcher) widen(ctx context.Context, c blob.CID, from []string, most int64, err error) error {
	if failed := (*FetchError)(nil); h.dht == nil || !errors.As(err, &failed) {
		return err
	}
	found, e := h.Providers(ctx, c)
	found = slices.DeleteFunc(found, func(a string) bool { return slices.Contains(from, a) })
	if e != nil || len(found) == 0 {
		return err
	}
	if h.download(ctx, c, found, most) != nil {
		return err
	}
	return nil
}
