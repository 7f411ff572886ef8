package pages

import (
	"net/netip"
	"sync"
	"time"
)

const (
	freeBytes = 64 << 20 // that an address reads for nothing in a window; one answer may be longer
	window    = time.Minute
	addresses = 1 << 16 // that are counted in a window: others wait for the next
)

// allowance bounds the bytes that each address reads for nothing: a request of some bytes is answered with a manifest
// of some millions. Addresses of IPv6 are counted by their network of 64 bits.
type allowance struct {
	now func() time.Time

	mu    sync.Mutex
	since time.Time
	read  map[netip.Prefix]int
}

// take counts bytes of an address with its port. It returns for how long the address has to wait; 0: it may read.
func (a *allowance) take(remote string, bytes int) time.Duration {
	var from netip.Prefix // of addresses that cannot be read: one
	if at, err := netip.ParseAddrPort(remote); err == nil {
		ip := at.Addr().Unmap().WithZone("")
		from, _ = ip.Prefix(min(ip.BitLen(), 64)) // an address has as many bits
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if past := now.Sub(a.since); a.read == nil || past < 0 || past >= window {
		a.since, a.read = now, map[netip.Prefix]int{}
	}
	used, known := a.read[from]
	if !known && len(a.read) >= addresses || known && used+bytes > freeBytes {
		return a.since.Add(window).Sub(now)
	}
	a.read[from] = used + bytes
	return 0
}
