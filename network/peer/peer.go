// Package peer is the libp2p host of one node: its identity, its connections, and the exchange of blobs with other
// nodes (serve.go, fetch.go; the protocol is described in wire.go), which is measured and paced so that control
// messages do not wait behind it (link.go, package pace). A host that nobody can dial is reached through relays
// (relay.go); one whose known address is stale, and who holds a blob, are found in a distributed hash table
// (discovery.go). Ordinary IPFS clients that connect read the same blobs (package ipfs).
//
// It moves bytes and verifies them against their CIDs. It does not know what a blob means, whom to trust with pay or
// duties, or which blobs are needed: the caller names likely holders.
package peer

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/multiformats/go-multiaddr"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/ipfs"
	"github.com/starling-network/starling/network/tally"
)

// ID is the identity of a peer: the digest of its public key.
type ID = p2p.ID

// Key is the private key behind an ID.
type Key = crypto.PrivKey

// ErrClosed ends the fetches of a host that is closed.
var ErrClosed = errors.New("peer: host is closed")

// Config says what a Host is. Zero values of everything but Key and Store mean the defaults.
type Config struct {
	Key    Key        // identity (Ed25519)
	Listen []string   // multiaddrs to listen on; default loopback, TCP and QUIC, free ports
	Store  blob.Store // what is served, and where fetched blobs go

	Standing func(ID) Standing // what a peer is to this host; nil: all are members
	// whether a stored blob may be given to a peer of a standing, ordinary IPFS clients being strangers; nil: every one
	// to all. A refused blob looks absent.
	Serve func(Standing, blob.CID) bool

	// addresses of some peers at any time, such as those on chain: the way into discovery; nil: none
	Known  func() []string
	Relay  func(ID) bool   // members for whom this host is a relay; nil: for nobody. It must be reachable itself
	Relays func() []string // addresses of relays through which others reach this host; nil: they dial it

	UploadSlots int           // leaves under way to others at the same time, those to slow readers not counted; default 16
	MaxBlob     int64         // bytes of the largest blob that Fetch takes; default 1 GiB
	Stall       time.Duration // a transfer without a byte of progress for so long has failed; default 30 s
	Hedge       time.Duration // a leaf in flight for so long is also asked from another peer; default 2 s

	sockets []quicreuse.Option // in tests: others than the system's
}

// Host is the network endpoint of a node. Its methods may be called concurrently.
type Host struct {
	config   Config
	host     host.Host
	dht      *dht.IpfsDHT    // or nil
	ctx      context.Context // of the host's life
	cancel   context.CancelFunc
	slots    *slots   // of uploads
	open     admitted // streams of others
	bitswap  func()   // stops it
	serving  sync.WaitGroup
	dialing  sync.Mutex // while it dials somebody back
	sent     atomic.Uint64
	received atomic.Uint64
	began    time.Time
	line     tally.Line // over which peers deliver
	fetcher  *fetcher
	links    *links

	mu sync.Mutex // while an upload begins, or the host closes
}

// GenerateKey returns a new random key.
func GenerateKey() (Key, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	return key, err
}

// KeyFromSeed returns the Ed25519 key of a seed.
func KeyFromSeed(seed [32]byte) Key {
	key, err := crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		panic(err) // the length is right
	}
	return key
}

// IDOf is the identity of a key.
func IDOf(key Key) (ID, error) { return p2p.IDFromPrivateKey(key) }

// New starts a host. The caller closes it.
func New(config Config) (*Host, error) {
	if config.Key == nil || config.Store == nil {
		return nil, errors.New("peer: Config needs a Key and a Store")
	}
	if len(config.Listen) == 0 {
		config.Listen = []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}
	}
	if config.Serve == nil {
		config.Serve = func(Standing, blob.CID) bool { return true }
	}
	if config.Standing == nil {
		config.Standing = func(ID) Standing { return Member }
	}
	config.UploadSlots = orDefault(config.UploadSlots, 16)
	config.MaxBlob = orDefault(config.MaxBlob, 1<<30)
	config.Stall = orDefault(config.Stall, 30*time.Second)
	config.Hedge = orDefault(config.Hedge, 2*time.Second)

	ctx, cancel := context.WithCancel(context.Background())
	endpoint, table, err := listen(ctx, config)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("peer: start on %v: %w", config.Listen, err)
	}
	h := &Host{
		config: config,
		ctx:    ctx,
		cancel: cancel,
		host:   endpoint,
		dht:    table,
		slots:  newSlots(config.UploadSlots),
		began:  time.Now(),
	}
	h.links = &links{host: h, of: map[ID]*link{}}
	h.fetcher = newFetcher(h)
	h.bitswap = ipfs.Serve(endpoint, config.Store, func(c blob.CID) bool { return config.Serve(Stranger, c) })
	endpoint.SetStreamHandler(Protocol, h.serve)
	endpoint.SetStreamHandler(ControlProtocol, h.answerControl)
	if config.Known != nil {
		endpoint.SetStreamHandler(DialBackProtocol, h.dialBack)
	}
	return h, nil
}

func orDefault[T int | int64 | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// ID returns the host's identity.
func (h *Host) ID() ID { return h.host.ID() }

// Addrs returns the multiaddrs under which others reach this host, each ending in /p2p/ID.
func (h *Host) Addrs() []string {
	var list []string
	for _, a := range h.host.Addrs() {
		list = append(list, a.String()+"/p2p/"+h.ID().String())
	}
	return list
}

// Connect opens a connection to the peer at addr, a multiaddr ending in /p2p/ID, unless there is one.
func (h *Host) Connect(ctx context.Context, addr string) error {
	info, err := parseAddr(addr)
	if err != nil {
		return err
	}
	if err := h.host.Connect(ctx, info); err != nil {
		return fmt.Errorf("peer: connect to %s: %w", addr, err)
	}
	return nil
}

// parseAddr splits a multiaddr ending in /p2p/ID.
func parseAddr(addr string) (p2p.AddrInfo, error) {
	a, err := multiaddr.NewMultiaddr(addr)
	if err != nil {
		return p2p.AddrInfo{}, fmt.Errorf("peer: address %q: %w", addr, err)
	}
	info, err := p2p.AddrInfoFromP2pAddr(a)
	if err != nil {
		return p2p.AddrInfo{}, fmt.Errorf("peer: address %q: it must end in /p2p/ and the peer's ID: %w", addr, err)
	}
	return *info, nil
}

// Traffic returns the bytes that went over blob streams, framing included, since the host started.
func (h *Host) Traffic() (sent, received uint64) { return h.sent.Load(), h.received.Load() }

// Close ends all connections and waits until the store is no longer in use by peers. Fetches in progress fail.
func (h *Host) Close() error {
	h.mu.Lock() // no upload begins after this
	h.cancel()
	h.mu.Unlock()
	h.bitswap()
	var err error
	if h.dht != nil {
		err = h.dht.Close()
	}
	err = errors.Join(err, h.host.Close())
	h.serving.Wait()
	return err
}
