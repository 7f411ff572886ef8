package provider

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/discovery"
	"github.com/starling-network/starling/protocol/registry"
)

// peerDirectory is where the participants of a network are reached, as the chain says.
type peerDirectory struct {
	chain *client.Client

	mu    sync.Mutex
	asked time.Time
	list  []registry.Participant
}

const (
	directoryAge  = 30 * time.Second // after which the chain is asked again, and
	directoryMiss = 2 * time.Second  // if a peer is not in the directory
	directoryWait = 5 * time.Second  // for its answer
)

// participants may be so old, or older if the chain does not answer.
func (d *peerDirectory) participants(age time.Duration) []registry.Participant {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.asked) > age {
		ctx, cancel := context.WithTimeout(context.Background(), directoryWait)
		defer cancel()
		if list, err := d.chain.Registry.Participants(ctx); err == nil {
			d.list = list
		}
		d.asked = time.Now()
	}
	return d.list
}

// addrs are those at which participants are dialled without a relay: that of any relay is among them.
func (d *peerDirectory) addrs() (list []string) {
	for _, p := range d.participants(directoryAge) {
		for _, a := range p.Addrs {
			if !strings.Contains(a, "/p2p-circuit") {
				list = append(list, a)
			}
		}
	}
	return list
}

// has reports whether a peer is that of a participant.
func (d *peerDirectory) has(id peer.ID) bool { return len(d.accounts(id)) > 0 }

// accounts are the participants who say that a peer is theirs.
func (d *peerDirectory) accounts(id peer.ID) (list []string) {
	for _, age := range []time.Duration{directoryAge, directoryMiss} {
		for _, p := range d.participants(age) {
			if p.PeerID == id.String() {
				list = append(list, p.ID)
			}
		}
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// standing is what a peer is to a host whose runs have the members that works says.
func (d *peerDirectory) standing(id peer.ID, works func(account string) bool) admission.Standing {
	accounts := d.accounts(id)
	switch {
	case slices.ContainsFunc(accounts, works):
		return admission.Member
	case len(accounts) > 0:
		return admission.Participant
	}
	return admission.Stranger
}

// toRegistered admits registered participants to the blobs of runs, so that any of them can check a run. To others,
// ordinary IPFS clients among them, the blobs look absent.
func toRegistered(to admission.Standing, _ blob.CID) bool { return to >= admission.Participant }

// reach is the part of a host's configuration that says how peers find it and each other, and whom it serves.
func (o Options) reach(chain *client.Client, works func(account string) bool) peer.Config {
	d := &peerDirectory{chain: chain}
	c := peer.Config{Listen: o.Listen, Known: d.addrs, Serve: toRegistered}
	c.Standing = func(id peer.ID) admission.Standing { return d.standing(id, works) }
	if o.Relays {
		c.Relay = d.has
	}
	if o.Hidden {
		c.Relays = d.addrs
	}
	return c
}

// publishAddrs puts the addresses of the host on the chain whenever they are not those that are there.
func (s *service) publishAddrs(ctx context.Context, there []string) {
	_ = s.host.Watch(ctx, func(addrs []string) error {
		addrs = advertised(addrs)
		if slices.Equal(addrs, there) {
			return nil
		}
		if err := s.chain.Registry.UpdateAddresses(ctx, s.host.ID().String(), addrs); err != nil {
			s.log.Warn("cannot tell the chain where this peer is reached", "err", err)
			return nil // the next change tries again
		}
		s.log.Info("reached at", "addresses", addrs)
		there = addrs
		return nil
	})
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

// kept are the blobs that are here to stay for a while: what falls to the member in its runs, and what it retains of
// others.
func (s *service) kept() []blob.CID {
	list := s.past.Blobs()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, job := range slices.Sorted(maps.Keys(s.runs)) {
		list = append(list, s.runs[job].Replicator.Load().Keeps()...)
	}
	return list
}

// advertised are as many addresses as a registration takes.
func advertised(addrs []string) []string {
	addrs = slices.DeleteFunc(slices.Clone(addrs), func(a string) bool { return len(a) > registry.MaxAddr })
	slices.Sort(addrs)
	return addrs[:min(len(addrs), registry.MaxAddrs)]
}
