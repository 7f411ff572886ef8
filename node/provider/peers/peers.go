// Package peers knows which peers are participants of a network, and where they are reached, from the answers of the
// chain. It opens no connection to a peer.
package peers

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/address"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/protocol/registry"
)

// Directory is where the participants of a network are reached, as the chain says.
type Directory struct {
	chain Chain

	mu    sync.Mutex
	asked time.Time
	list  []registry.Participant
	tcp   map[netip.AddrPort]bool // the addresses of the list over TCP; nil: they are not read yet
}

// Chain lists the participants of a network.
type Chain interface {
	Participants(ctx context.Context) ([]registry.Participant, error)
}

// New is a directory that has asked nothing yet.
func New(c Chain) *Directory { return &Directory{chain: c} }

const (
	directoryAge  = 30 * time.Second // after which the chain is asked again, and
	directoryMiss = 2 * time.Second  // if a peer is not in the directory
	directoryWait = 5 * time.Second  // for its answer
)

// participants may be so old, or older if the chain does not answer.
func (d *Directory) participants(age time.Duration) []registry.Participant {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.asked) > age {
		ctx, cancel := context.WithTimeout(context.Background(), directoryWait)
		defer cancel()
		if list, err := d.chain.Participants(ctx); err == nil {
			d.list, d.tcp = list, nil
		}
		d.asked = time.Now()
	}
	return d.list
}

// Addrs are those at which participants are dialled without a relay: that of any relay is among them.
func (d *Directory) Addrs() (list []string) {
	for _, p := range d.participants(directoryAge) {
		for _, a := range p.Addrs {
			if !strings.Contains(a, "/p2p-circuit") {
				list = append(list, a)
			}
		}
	}
	return list
}

// At reports whether a participant is dialled at an IP address and port over TCP.
func (d *Directory) At(at netip.AddrPort) bool {
	d.participants(directoryAge)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tcp == nil {
		d.tcp = map[netip.AddrPort]bool{}
		for _, p := range d.list {
			for _, a := range p.Addrs {
				if own, ok := address.TCP(a); ok {
					d.tcp[own] = true
				}
			}
		}
	}
	return d.tcp[at]
}

// Advertised are as many addresses as a registration takes.
func Advertised(addrs []string) []string {
	addrs = slices.DeleteFunc(slices.Clone(addrs), func(a string) bool { return len(a) > registry.MaxAddr })
	slices.Sort(addrs)
	return addrs[:min(len(addrs), registry.MaxAddrs)]
}

// Has reports whether a peer is that of a participant.
func (d *Directory) Has(id peer.ID) bool { return len(d.accounts(id)) > 0 }

// accounts are the participants who say that a peer is theirs.
func (d *Directory) accounts(id peer.ID) (list []string) {
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

// Standing is what a peer is to a host whose runs have the members that works says.
func (d *Directory) Standing(id peer.ID, works func(account string) bool) admission.Standing {
	accounts := d.accounts(id)
	switch {
	case slices.ContainsFunc(accounts, works):
		return admission.Member
	case len(accounts) > 0:
		return admission.Participant
	}
	return admission.Stranger
}

// ToRegistered admits registered participants to the blobs of runs, so that any of them can check a run. To others,
// ordinary IPFS clients among them, the blobs look absent.
func ToRegistered(to admission.Standing, _ blob.CID) bool { return to >= admission.Participant }
