// Package address reads addresses of peers: multiaddrs that end in /p2p/ and the ID of the peer. It resolves no names
// and dials no peer.
package address

import (
	"fmt"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// Parse splits a multiaddr ending in /p2p/ID.
func Parse(addr string) (peer.AddrInfo, error) {
	a, err := multiaddr.NewMultiaddr(addr)
	if err != nil {
		return peer.AddrInfo{}, fmt.Errorf("peer: address %q: %w", addr, err)
	}
	info, err := peer.AddrInfoFromP2pAddr(a)
	if err != nil {
		return peer.AddrInfo{}, fmt.Errorf("peer: address %q: it must end in /p2p/ and the peer's ID: %w", addr, err)
	}
	return *info, nil
}

// Others are the peers at the given addresses, each once, without self. Addresses that cannot be read are left out.
func Others(self peer.ID, addrs []string) (list []peer.AddrInfo) {
	for _, addr := range addrs {
		info, err := Parse(addr)
		if err != nil || info.ID == self {
			continue
		}
		i := slices.IndexFunc(list, func(other peer.AddrInfo) bool { return other.ID == info.ID })
		if i < 0 {
			list = append(list, info)
			continue
		}
		list[i].Addrs = append(list[i].Addrs, info.Addrs...)
	}
	return list
}
