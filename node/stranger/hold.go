package stranger

import (
	"context"
	"encoding/binary"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/wire"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
)

const (
	identities = 8 // peers that ask one worker; the first is the attacker's own, which may be registered
	requested  = 4 // requests on one stream
	begun      = 5 // bytes of an answer after which an upload has begun
	between    = time.Second
)

// hold connects to all workers, and holds as many of their uploads as they begin.
func (a *assault) hold(ctx context.Context) error {
	own, err := a.key()
	if err != nil {
		return err
	}
	participants, err := a.chain.Registry.Participants(ctx)
	if err != nil {
		return err
	}
	var working sync.WaitGroup
	found := false
	for _, p := range participants {
		to := located(p)
		if !p.Has(crew.Worker) || len(to.Addrs) == 0 || p.ID == own.Account().Address() {
			continue
		}
		found = true
		for i := range identities {
			key := own.Peer()
			if i > 0 {
				if key, err = peer.GenerateKey(); err != nil {
					return err
				}
			}
			h, err := libp2p.New(libp2p.Identity(key), libp2p.NoListenAddrs, libp2p.DisableRelay(),
				libp2p.DisableMetrics(), libp2p.ResourceManager(nil))
			if err != nil {
				return err
			}
			working.Go(func() { a.occupy(ctx, h, to) })
		}
	}
	working.Wait()
	if !found {
		return &Error{"stranger: no worker of this network says where it is reached", "start one: starling worker up --help"}
	}
	return nil
}

// located is where a participant says that it is.
func located(p registry.Participant) (info p2p.AddrInfo) {
	for _, text := range p.Addrs {
		m, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			continue
		}
		if i, err := p2p.AddrInfoFromP2pAddr(m); err == nil {
			info.ID, info.Addrs = i.ID, append(info.Addrs, i.Addrs...)
		}
	}
	return info
}

// occupy opens a stream to a worker for every blob of the open runs, again and again, and reads next to nothing.
func (a *assault) occupy(ctx context.Context, h host.Host, to p2p.AddrInfo) {
	defer h.Close()
	for ctx.Err() == nil {
		_ = h.Connect(ctx, to) // a worker may refuse
		for _, c := range a.blobs(ctx) {
			s, err := h.NewStream(ctx, to.ID, wire.Protocol)
			if err != nil {
				break
			}
			body := canon.MustMarshal(struct {
				Root []byte `cbor:"1,keyasint"`
				From uint32 `cbor:"2,keyasint"`
				To   uint32 `cbor:"3,keyasint"`
			}{c.Bytes(), 0, 1})
			for range requested {
				_, _ = s.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(body))), body...))
			}
			go func() {
				if _, err := io.ReadFull(s, make([]byte, begun)); err == nil {
					a.count(func(r *Report) { r.Held++ })
				}
			}()
		}
		pause(ctx, between)
	}
}

// blobs are those that workers of open runs serve: specifications and updates.
func (a *assault) blobs(ctx context.Context) (list []blob.CID) {
	jobs, err := a.chain.Training.Runs(ctx, true)
	if err != nil {
		return nil
	}
	for _, j := range jobs {
		s, err := a.chain.Training.Run(ctx, j)
		if err != nil {
			return list
		}
		for _, id := range append(updates(s), s.Terms.SpecCID) {
			if c, err := blob.Parse(id); err == nil && !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	return list
}

// updates are the CIDs of the updates that units of the current round committed.
func updates(s run.State) (list []string) {
	for _, u := range s.Units {
		list = append(list, u.Commit.UpdateCID)
	}
	return list
}
