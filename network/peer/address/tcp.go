package address

import (
	"net/netip"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// TCP is the IP address and port of a peer's multiaddr over TCP; ok is false for another one, such as one that goes
// through a relay or has a name.
func TCP(addr string) (at netip.AddrPort, ok bool) {
	a, err := multiaddr.NewMultiaddr(addr)
	if err != nil {
		return at, false
	}
	if _, err := a.ValueForProtocol(multiaddr.P_CIRCUIT); err == nil {
		return at, false
	}
	to, _ := multiaddr.SplitFunc(a, func(c multiaddr.Component) bool { return c.Protocol().Code == multiaddr.P_P2P })
	network, text, err := manet.DialArgs(to)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return at, false
	}
	if at, err = netip.ParseAddrPort(text); err != nil {
		return at, false
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), true
}
