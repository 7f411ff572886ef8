package discovery

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/peer/admission"
)

// Limits of the records of providers.
const (
	providerTime  = 48 * time.Hour // after which a record is dropped
	providersMost = 1 << 16        // records in all
	providersEach = announceMost   // of one peer
	providersOf   = 64             // of one blob
	providerAddrs = 8              // addresses of a record, the first ones
	providerBytes = 256            // of an address
)

// providers holds records of the providers of blobs, in memory. It keeps none of strangers, and of others no more than
// the limits allow: the oldest record of the peer with the most is dropped for a new one. It implements
// records.ProviderStore.
type providers struct {
	self     peer.ID
	standing func(peer.ID) admission.Standing
	now      func() time.Time

	mu      sync.Mutex
	records map[string][]provision // by the multihash of the blob, the oldest first
	count   map[peer.ID]int
	total   int
}

type provision struct {
	info peer.AddrInfo
	at   time.Time
}

func newProviders(self peer.ID, standing func(peer.ID) admission.Standing) *providers {
	return &providers{self: self, standing: standing, now: time.Now, records: map[string][]provision{},
		count: map[peer.ID]int{}}
}

// AddProvider implements records.ProviderStore.
func (p *providers) AddProvider(_ context.Context, key []byte, info peer.AddrInfo) error {
	if info.ID != p.self && p.standing(info.ID) == admission.Stranger {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k, kept := string(key), peer.AddrInfo{ID: info.ID}
	for _, a := range info.Addrs {
		if len(kept.Addrs) < providerAddrs && len(a.Bytes()) <= providerBytes {
			kept.Addrs = append(kept.Addrs, a)
		}
	}
	p.remove(k, func(r provision) bool { return r.info.ID == info.ID || p.now().Sub(r.at) >= providerTime })
	if p.count[info.ID] >= providersEach {
		return nil
	}
	if list := p.records[k]; len(list) >= providersOf {
		oldest := list[0].info.ID
		p.remove(k, func(r provision) bool { return r.info.ID == oldest })
	}
	if p.total >= providersMost {
		p.evict()
	}
	p.records[k] = append(p.records[k], provision{kept, p.now()})
	p.count[info.ID]++
	p.total++
	return nil
}

// remove drops records of a blob.
func (p *providers) remove(key string, which func(provision) bool) {
	list := slices.DeleteFunc(p.records[key], func(r provision) bool {
		if !which(r) {
			return false
		}
		p.total--
		if p.count[r.info.ID]--; p.count[r.info.ID] == 0 {
			delete(p.count, r.info.ID)
		}
		return true
	})
	if p.records[key] = list; len(list) == 0 {
		delete(p.records, key)
	}
}

// evict drops records that are too old, or else the older half of the records of the peer with the most, so that it is
// not called again soon.
func (p *providers) evict() {
	before := p.total
	var ages []time.Time
	greedy, most := peer.ID(""), 0
	for id, n := range p.count {
		if n > most || n == most && id < greedy {
			greedy, most = id, n
		}
	}
	for key := range p.records {
		p.remove(key, func(r provision) bool { return p.now().Sub(r.at) >= providerTime })
		for _, r := range p.records[key] {
			if r.info.ID == greedy {
				ages = append(ages, r.at)
			}
		}
	}
	if p.total < before || len(ages) == 0 {
		return
	}
	slices.SortFunc(ages, time.Time.Compare)
	until := ages[len(ages)/2]
	for key := range p.records {
		p.remove(key, func(r provision) bool { return r.info.ID == greedy && !r.at.After(until) })
	}
}

// GetProviders implements records.ProviderStore.
func (p *providers) GetProviders(_ context.Context, key []byte) (list []peer.AddrInfo, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(string(key), func(r provision) bool { return p.now().Sub(r.at) >= providerTime })
	for _, r := range p.records[string(key)] {
		list = append(list, r.info)
	}
	return list, nil
}

// Close implements records.ProviderStore.
func (p *providers) Close() error { return nil }
