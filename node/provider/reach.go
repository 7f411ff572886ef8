package provider

import (
	"context"
	"maps"
	"slices"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/discovery"
	"github.com/starling-network/starling/node/provider/peers"
)

// reach is the part of a host's configuration that says how peers find it and each other, and whom it serves.
func (o Options) reach(chain *client.Client, works func(account string) bool) peer.Config {
	d := peers.New(chain.Registry)
	c := peer.Config{Listen: o.Listen, Through: o.Head.Address(), Known: d.Addrs, Serve: peers.ToRegistered}
	c.Standing = func(id peer.ID) admission.Standing { return d.Standing(id, works) }
	if o.Relays {
		c.Relay = d.Has
	}
	if o.Hidden {
		c.Relays = d.Addrs
	}
	return c
}

// provideBlobs tells the network which blobs are kept here that others may look for, as blocks pass, whose time is the
// clock. On chain they find the members of a run; by this they find who is none any more.
func (s *service) provideBlobs(ctx context.Context) {
	blocks, err := s.chain.Blocks(ctx)
	if err != nil {
		s.log.Warn("cannot announce blobs", "err", err)
		return
	}
	announcer := discovery.NewAnnouncer(s.host.Announce)
	for b := range blocks {
		if err := announcer.Announce(ctx, s.kept(), b.Time); err != nil && ctx.Err() == nil {
			s.log.Debug("cannot announce blobs", "err", err)
		}
	}
}

// kept are the blobs that stay here for a while: those that fall to the member in its runs, and those of past ones.
func (s *service) kept() []blob.CID {
	list := s.past.Blobs()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, job := range slices.Sorted(maps.Keys(s.runs)) {
		list = append(list, s.runs[job].Replicator.Load().Keeps()...)
	}
	return list
}
