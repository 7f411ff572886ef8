package peer

import (
	"context"
	"slices"
	"sync"
	"time"

	p2p "github.com/libp2p/go-libp2p/core/peer"
)

// Limits of the records of who provides a blob.
const (
	providerTime  = 48 * time.Hour // after which a record is forgotten
	providersMost = 1 << 16        // records in all
	providersEach = announceMost   // of one peer
	providersOf   = 64             // of one blob
	providerAddrs = 8              // addresses of a record, the first ones
	providerBytes = 256            // of an address
)

// providers holds records of who provides a blob, in memory. It keeps none of strangers, and of others no more than the
// limits allow: the oldest of who has most goes for a new one. It implements records.ProviderStore.
type providers struct {
	self     ID
	standing func(ID) Standing
	now      func() time.Time

	mu      sync.Mutex
	records map[string][]provision // by the multihash of the blob, the oldest first
	count   map[ID]int
	total   int
}

type provision struct {
	info p2p.AddrInfo
	at   time.Time
}

func newProviders(self ID, standing func(ID) Standing) *providers {
	return &providers{self: self, standing: standing, now: time.Now, records: map[string][]provision{},
		count: map[ID]int{}}
}

// AddProvider implements records.ProviderStore.
func (p *providers) AddProvider(_ context.Context, key []byte, info p2p.AddrInfo) error {
	if info.ID != p.self && p.standing(info.ID) == Stranger {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k, kept := string(key), p2p.AddrInfo{ID: info.ID}
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

// remove forgets records of a blob.
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

// evict forgets what is too old, or else half of the records of who has most, the oldest: so it is not done again soon.
func (p *providers) evict() {
	before := p.total
	var ages []time.Time
	greedy, most := ID(""), 0
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
func (p *providers) GetProviders(_ context.Context, key []byte) (list []p2p.AddrInfo, _ error) {
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
