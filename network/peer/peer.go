// Package peer is the libp2p host of one node: its identity, its connections, and the exchange of blobs with other
// nodes (packages wire, upload and fetch), which is measured and paced so that control messages do not wait behind it
// (packages link and pace). Package admission decides which peers are served first. A host that others cannot dial is
// reached through relays (package relay); a peer whose known address is stale, and the holders of a blob, are found in
// a distributed hash table (package discovery). Ordinary IPFS clients that connect read the same blobs (package ipfs).
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
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/ipfs"
	"github.com/starling-network/starling/network/peer/address"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/channel"
	"github.com/starling-network/starling/network/peer/dialback"
	"github.com/starling-network/starling/network/peer/dialogue"
	"github.com/starling-network/starling/network/peer/discovery"
	"github.com/starling-network/starling/network/peer/fetch"
	"github.com/starling-network/starling/network/peer/lifetime"
	"github.com/starling-network/starling/network/peer/link"
	"github.com/starling-network/starling/network/peer/message"
	"github.com/starling-network/starling/network/peer/upload"
	"github.com/starling-network/starling/network/peer/wire"
)

// ID is the identity of a peer: the digest of its public key.
type ID = p2p.ID

// Key is the private key behind an ID.
type Key = crypto.PrivKey

// Config says what a Host is. Zero values of everything but Key and Store mean the defaults.
type Config struct {
	Key    Key        // identity (Ed25519)
	Listen []string   // multiaddrs to listen on; default loopback, TCP and QUIC, free ports
	Store  blob.Store // what is served, and where fetched blobs go

	Standing func(ID) admission.Standing // what a peer is to this host; nil: all are members
	// whether a stored blob may be given to a peer of a standing, ordinary IPFS clients being strangers; nil: every one
	// to all. A refused blob looks absent.
	Serve func(admission.Standing, blob.CID) bool

	// addresses of some peers at any time, such as those on chain: the way into discovery; nil: none
	Known  func() []string
	Relay  func(ID) bool   // members for which this host is a relay; nil: none. It must be reachable itself
	Relays func() []string // addresses of relays through which others reach this host; nil: they dial it

	// host:port of an HTTP proxy through which this host makes all its connections, over TCP, as it reaches nothing else;
	// "": it makes them itself. It then needs Relays
	Through string

	UploadSlots int           // leaves under way to others at the same time, those to slow readers not counted; default 16
	MaxBlob     int64         // bytes of the largest blob that Fetch takes; default 1 GiB
	Stall       time.Duration // a transfer without a byte of progress for so long has failed; default 30 s
	Hedge       time.Duration // a leaf in flight for so long is also asked from another peer; default 2 s

	sockets []quicreuse.Option // in tests: others than the system's
}

// Host is the network endpoint of a node. Its methods may be called concurrently.
type Host struct {
	*fetch.Fetcher

	config  Config
	fetches fetch.Config
	host    host.Host
	life    *lifetime.Lifetime
	links   *link.Table
	table   *discovery.Table // nil: it takes no part in discovery
	bitswap func()           // stops it

	channels *channel.Table
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
	if config.Through != "" {
		config.Listen = []string{"/ip4/127.0.0.1/tcp/0"} // no peer dials it
	}
	if config.Serve == nil {
		config.Serve = func(admission.Standing, blob.CID) bool { return true }
	}
	if config.Standing == nil {
		config.Standing = func(ID) admission.Standing { return admission.Member }
	}
	config.UploadSlots = orDefault(config.UploadSlots, 16)
	config.MaxBlob = orDefault(config.MaxBlob, 1<<30)
	config.Stall = orDefault(config.Stall, 30*time.Second)
	config.Hedge = orDefault(config.Hedge, 2*time.Second)

	if err := checkListen(config.Listen); err != nil {
		return nil, err
	}
	life := lifetime.New()
	endpoint, table, err := listen(life.Context(), config)
	if err != nil {
		life.End()
		return nil, fmt.Errorf("peer: start on %v: %w", config.Listen, err)
	}
	h := &Host{
		config: config,
		host:   endpoint,
		life:   life,
		table:  table,
		links:  link.NewTable(endpoint, life, config.Stall),
	}
	fetching := fetch.Config{Host: endpoint, Store: config.Store, Links: h.links, Life: life, MaxBlob: config.MaxBlob,
		Hedge: config.Hedge}
	if table != nil {
		fetching.Providers = table.Providers
	}
	h.fetches, h.Fetcher = fetching, fetch.New(fetching)
	uploads := upload.NewServer(upload.Config{Store: config.Store, Standing: config.Standing, Serve: config.Serve,
		Links: h.links, Life: life, Slots: config.UploadSlots, Stall: config.Stall})
	h.bitswap = ipfs.Serve(endpoint, config.Store, func(c blob.CID) bool { return config.Serve(admission.Stranger, c) })
	endpoint.SetStreamHandler(wire.Protocol, uploads.Answer)
	endpoint.SetStreamHandler(link.ControlProtocol, h.links.AnswerControl)
	h.channels = channel.NewTable(endpoint, life, func(from ID) bool {
		return config.Standing(from) >= admission.Participant
	})
	endpoint.SetStreamHandler(channel.Protocol, h.channels.Answer)
	if config.Known != nil {
		endpoint.SetStreamHandler(dialback.Protocol, dialback.NewServer(life).Answer)
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
	info, err := address.Parse(addr)
	if err != nil {
		return err
	}
	if err := h.host.Connect(ctx, info); err != nil {
		return fmt.Errorf("peer: connect to %s: %w", addr, err)
	}
	return nil
}

// Into returns a fetcher of this host that leaves what it fetches in another store than the host's.
func (h *Host) Into(store blob.Store) *fetch.Fetcher {
	config := h.fetches
	config.Store = store
	return fetch.New(config)
}

// Traffic returns the bytes that went over blob streams, framing included, since the host started.
func (h *Host) Traffic() (sent, received uint64) { return h.links.Traffic() }

// Peers returns what is known about the peers that bulk or control messages went to or came from, sorted by peer.
func (h *Host) Peers() []link.State { return h.links.Peers() }

// Control opens a control stream of the caller's own to the peer at addr, a multiaddr ending in /p2p/ID.
func (h *Host) Control(ctx context.Context, addr string) (*link.Control, error) {
	return h.links.Control(ctx, addr)
}

// Ask asks a peer a small question of a protocol of the caller's: see message.Ask.
func (h *Host) Ask(ctx context.Context, to p2p.AddrInfo, of string, question []byte) ([]byte, error) {
	return message.Ask(ctx, h.host, to, protocol.ID(of), question)
}

// Answer answers the questions of a protocol that peers with an account ask, from now on. Strangers get no answer.
func (h *Host) Answer(of string, answer message.Answerer) {
	h.host.SetStreamHandler(protocol.ID(of), message.Handler(h.life,
		func(from ID) bool { return h.config.Standing(from) >= admission.Participant }, answer))
}

// Dialogue opens a dialogue of a protocol of the caller's with the peer at addr, a multiaddr ending in /p2p/ID: see
// dialogue.Open.
func (h *Host) Dialogue(ctx context.Context, addr, of string, longest int) (*dialogue.Dialogue, error) {
	to, err := address.Parse(addr)
	if err != nil {
		return nil, err
	}
	return dialogue.Open(ctx, h.host, to, protocol.ID(of), longest)
}

// Converse holds dialogues of a protocol with peers that have an account, from now on: see dialogue.Handler.
func (h *Host) Converse(of string, longest int, begin func(from ID) dialogue.Answerer) {
	h.host.SetStreamHandler(protocol.ID(of), dialogue.Handler(h.life,
		func(from ID) bool { return h.config.Standing(from) >= admission.Participant }, longest, begin))
}

// Channels are streams of one direction that peers have agreed upon.
func (h *Host) Channels() *channel.Table { return h.channels }

// Announce tells others that this host provides a blob: discovery.ErrNoDiscovery without Config.Known. It is forgotten
// after two days.
func (h *Host) Announce(ctx context.Context, c blob.CID) error { return h.table.Announce(ctx, c) }

// Providers searches for hosts that announced a blob, and returns their addresses.
func (h *Host) Providers(ctx context.Context, c blob.CID) ([]string, error) {
	return h.table.Providers(ctx, c)
}

// Ports are those that the host listens on.
func (h *Host) Ports() []dialback.Port { return dialback.Ports(h.host) }

// DialBack asks the peer at addr, a multiaddr ending in /p2p/ID, to dial a port of this host: dialback.ErrNotTried if
// it did not.
func (h *Host) DialBack(ctx context.Context, addr string, port dialback.Port) (dialback.Result, error) {
	return dialback.Ask(ctx, h.host, addr, port)
}

// Close ends all connections and waits until the store is no longer in use by peers. Fetches in progress fail.
func (h *Host) Close() error {
	h.life.End() // no upload begins after this
	h.bitswap()
	var err error
	if h.table != nil {
		err = h.table.Close()
	}
	err = errors.Join(err, h.host.Close())
	h.life.Wait()
	return err
}
