package attack

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"io"
	"time"

	libp2p "github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	multiaddr "github.com/multiformats/go-multiaddr"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/wire"
)

// HostilePeers is how many hostile peers stall a worker's transfers, and in how many rounds the worker has an update
// to deliver, with them and without. An update is late if it is not delivered by the end of its round.
type HostilePeers struct {
	Peers, Streams int
	Round          time.Duration // shorter than any of a real job
	Rounds         int
}

// besiegedBytes are those of an update of ten million parameters in int8.
const besiegedBytes = 10 << 20

// delivered is how many updates a member of its run gets from a worker while peers ask it for the same blob on as
// many streams as it lets them open, and read slowly, of those that it gets without them.
func (s HostilePeers) delivered(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	data := make([]byte, besiegedBytes)
	_, _ = rand.Read(data) // never fails
	stores := [2]*blob.Memory{blob.NewMemory(), blob.NewMemory()}
	var ends [2]*peer.Host
	for i := range ends {
		key, err := peer.GenerateKey()
		if err != nil {
			return 0, err
		}
		config := peer.Config{Key: key, Store: stores[i], Listen: []string{"/ip4/127.0.0.1/tcp/0"}}
		if i == 1 {
			member := ends[0].ID()
			config.Standing = func(id peer.ID) admission.Standing {
				if id == member {
					return admission.Member
				}
				return admission.Participant
			}
		}
		if ends[i], err = peer.New(config); err != nil {
			return 0, err
		}
		defer ends[i].Close()
	}
	member, worker := ends[0], ends[1]
	c, err := stores[1].Put(ctx, data)
	if err != nil {
		return 0, err
	}
	alone, err := s.fetched(ctx, member, worker, stores[0], c)
	if err != nil {
		return 0, err
	}
	leave, err := s.around(ctx, worker, c)
	defer leave()
	if err != nil {
		return 0, err
	}
	attacked, err := s.fetched(ctx, member, worker, stores[0], c)
	return attacked / alone, err
}

// fetched is how many updates a member gets before their rounds end.
func (s HostilePeers) fetched(ctx context.Context, member, worker *peer.Host, of blob.Store, c blob.CID) (n float64,
	err error) {
	for range s.Rounds {
		if err := of.Delete(ctx, c); err != nil {
			return n, err
		}
		round, end := context.WithTimeout(ctx, s.Round)
		if member.Ensure(round, c, worker.Addrs()) == nil {
			n++
		}
		<-round.Done()
		end()
	}
	return n, ctx.Err()
}

// around connects all peers to a worker and lets them ask. They disconnect when leave is called.
func (s HostilePeers) around(ctx context.Context, worker *peer.Host, c blob.CID) (leave func(), err error) {
	var closers []io.Closer
	leave = func() {
		for _, c := range closers {
			_ = c.Close()
		}
	}
	to := p2p.AddrInfo{ID: worker.ID()}
	for _, a := range worker.Addrs() {
		m, err := multiaddr.NewMultiaddr(a)
		if err != nil {
			return leave, err
		}
		if bare, _ := p2p.SplitAddr(m); bare != nil {
			to.Addrs = append(to.Addrs, bare)
		}
	}
	body := canon.MustMarshal(struct {
		Root []byte `cbor:"1,keyasint"`
		From uint32 `cbor:"2,keyasint"`
		To   uint32 `cbor:"3,keyasint"`
	}{c.Bytes(), 0, besiegedBytes / blob.LeafBytes})
	question := append(binary.BigEndian.AppendUint16(nil, uint16(len(body))), body...)
	ctx, stop := context.WithCancel(ctx)
	closers = append(closers, closer(stop))
	for range s.Peers {
		h, err := libp2p.New(libp2p.NoListenAddrs, libp2p.DisableRelay(), libp2p.DisableMetrics(),
			libp2p.Transport(tcp.NewTCPTransport), libp2p.ResourceManager(nil), libp2p.DisableIdentifyAddressDiscovery())
		if err != nil {
			return leave, err
		}
		closers = append(closers, h)
		_ = h.Connect(ctx, to) // the worker may take no more connections
		for range s.Streams {
			go nag(ctx, h, to, question)
		}
	}
	return leave, nil
}

// closer is a function that ends something.
type closer func()

// Close implements io.Closer.
func (c closer) Close() error { c(); return nil }

// nag keeps a stream to a worker full of requests, reads almost nothing of the answers, and opens another stream each
// time the worker closes or refuses one, until the context ends.
func nag(ctx context.Context, h host.Host, to p2p.AddrInfo, question []byte) {
	for ctx.Err() == nil {
		if s, err := h.NewStream(ctx, to.ID, wire.Protocol); err == nil {
			for range 4 {
				_, _ = s.Write(question)
			}
			for err == nil && pause(ctx, nagEvery) {
				_, err = io.ReadFull(s, make([]byte, 4096))
			}
			_ = s.Reset()
		}
		if pause(ctx, nagEvery) && h.Network().Connectedness(to.ID) != network.Connected {
			_ = h.Connect(ctx, to)
		}
	}
}

// nagEvery is how long a hostile peer waits between two reads of a few bytes, and before it opens another stream.
const nagEvery = time.Second

// pause waits; false if the context has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
