package node

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/protocol/registry"
)

// directory is where the participants of a network are reached, as the chain says.
type directory struct {
	chain *client.Client

	mu    sync.Mutex
	asked time.Time
	list  []registry.Participant
}

const (
	directoryAge  = 30 * time.Second // after which the chain is asked again, and
	directoryMiss = 2 * time.Second  // if somebody is not in the directory
	directoryWait = 5 * time.Second  // for its answer
)

// participants may be so old, or older if the chain does not answer.
func (d *directory) participants(age time.Duration) []registry.Participant {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.asked) > age {
		ctx, cancel := context.WithTimeout(context.Background(), directoryWait)
		defer cancel()
		if list, err := d.chain.Participants(ctx); err == nil {
			d.list = list
		}
		d.asked = time.Now()
	}
	return d.list
}

// addrs are those at which participants are dialled without a relay: that of any relay is among them.
func (d *directory) addrs() (list []string) {
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
func (d *directory) has(id peer.ID) bool {
	is := func(p registry.Participant) bool { return p.PeerID == id.String() }
	return slices.ContainsFunc(d.participants(directoryAge), is) || slices.ContainsFunc(d.participants(directoryMiss), is)
}

// reach is the part of a host's configuration that says how peers find it and each other.
func (o WorkerOptions) reach(chain *client.Client) peer.Config {
	d := &directory{chain: chain}
	c := peer.Config{Listen: o.Listen, Known: d.addrs}
	if o.Relays {
		c.Relay = d.has
	}
	if o.Hidden {
		c.Relays = d.addrs
	}
	return c
}

// advertise puts the addresses of the host on the chain whenever they are not those that are there.
func (s *service) advertise(ctx context.Context, there []string) {
	_ = s.host.Watch(ctx, func(addrs []string) error {
		addrs = advertised(addrs)
		if slices.Equal(addrs, there) {
			return nil
		}
		if err := s.chain.UpdateAddresses(ctx, s.host.ID().String(), addrs); err != nil {
			s.log.Warn("cannot tell the chain where this peer is reached", "err", err)
			return nil // the next change tries again
		}
		s.log.Info("reached at", "addresses", addrs)
		there = addrs
		return nil
	})
}

// advertised are as many addresses as a registration takes.
func advertised(addrs []string) []string {
	addrs = slices.DeleteFunc(slices.Clone(addrs), func(a string) bool { return len(a) > registry.MaxAddr })
	slices.Sort(addrs)
	return addrs[:min(len(addrs), registry.MaxAddrs)]
}
