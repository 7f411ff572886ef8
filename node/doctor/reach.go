package doctor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/dialback"
)

// nat says which peers can reach the addresses that a worker listens on. If the network has participants to ask, they
// try to dial this machine.
func nat(ctx context.Context, o Options) Finding {
	if len(o.Listen) == 0 {
		return Finding{Level: OK, Text: "without --listen a worker is reached on this machine only"}
	}
	addrs, err := expand(o.Listen)
	if err != nil {
		return Finding{Level: Fail, Text: err.Error(), Fix: "give multiaddrs such as /ip4/10.0.0.8/tcp/4001"}
	}
	if o.Network != "" {
		peers, _ := participants(ctx, o) // the check of the chain says why there are none
		if f, ok := reachOf(dialedBack(ctx, o.Listen, peers)); ok {
			return f
		}
	}
	return natOf(addrs)
}

// participants are those of the network who can be dialled, by one address each, in any order.
func participants(ctx context.Context, o Options) (addrs []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := client.Connect(o.Network, wallet.KeyFromSeed([32]byte{}))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	list, err := c.Registry.Participants(ctx)
	for _, p := range list {
		i := slices.IndexFunc(p.Addrs, func(a string) bool { return !strings.Contains(a, "/p2p-circuit") })
		if i >= 0 {
			addrs = append(addrs, p.Addrs[i])
		}
	}
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	return addrs, err
}

// Limits of the questions to other participants.
const (
	tryPeers = 12 // participants to ask; some may be away, or not dial back
	askPeers = 3  // whose answer counts
)

// dialedBack lets peers dial a host that listens at the addresses, until one has reached it.
func dialedBack(ctx context.Context, listen, peers []string) (answers []dialback.Result) {
	h, err := host(listen...)
	if err != nil {
		return nil // the check of the addresses says why
	}
	defer h.Close()
	asked := 0
	for _, p := range peers[:min(len(peers), tryPeers)] {
		before := len(answers)
		for _, port := range h.Ports() {
			a, err := ask(ctx, h, p, port)
			if err != nil {
				break
			}
			if answers = append(answers, a); a.Reached {
				return answers
			}
		}
		if len(answers) > before {
			asked++
		}
		if asked == askPeers {
			break
		}
	}
	return answers
}

func ask(ctx context.Context, h *peer.Host, addr string, port dialback.Port) (dialback.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return h.DialBack(ctx, addr, port)
}

// reachOf says what the answers mean; nothing if there are none.
func reachOf(answers []dialback.Result) (f Finding, ok bool) {
	var tried []string
	for _, a := range answers {
		if a.Reached {
			return Finding{Level: OK, Text: "another participant has dialled this machine at " + a.At}, true
		}
		tried = append(tried, a.At)
	}
	slices.Sort(tried)
	return Finding{
		Level: Warn, Text: fmt.Sprintf("other participants cannot dial this machine at %v", slices.Compact(tried)),
		Fix: "open the port in the firewall, or forward it on the router; or start the worker with --behind-nat, and a " +
			"participant that can be dialled with --relay",
	}, len(tried) > 0
}

// cgnat is the range of carrier-grade translators (RFC 6598).
var cgnat = netip.MustParsePrefix("100.64.0.0/10")

func natOf(addrs []netip.Addr) Finding {
	var private, loops int
	for _, a := range addrs {
		switch {
		case a.IsLoopback():
			loops++
		case a.IsPrivate() || a.IsLinkLocalUnicast() || cgnat.Contains(a):
			private++
		default:
			return Finding{Level: OK, Text: fmt.Sprintf("%s is a public address", a)}
		}
	}
	switch {
	case private > 0:
		return Finding{Level: Warn, Text: fmt.Sprintf("%v are addresses of a private network: who is outside of it cannot "+
			"dial this machine", addrs),
			Fix: "forward a port of the router, or start the worker with --behind-nat and a participant that can be dialled " +
				"with --relay; leave it if all others are of the same network"}
	case loops > 0:
		return Finding{Level: Warn, Text: "only the loopback is listened on: other machines cannot dial this one",
			Fix: "name an address that others reach with --listen"}
	}
	return Finding{Level: Fail, Text: "no address to listen on",
		Fix: "name one with --listen, such as /ip4/10.0.0.8/tcp/4001"}
}

// expand lists the addresses that multiaddrs stand for on this machine.
func expand(listen []string) (addrs []netip.Addr, err error) {
	for _, text := range listen {
		m, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		ip, err := manet.ToIP(m)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		a, ok := netip.AddrFromSlice(ip)
		if !ok {
			return nil, errors.New(text + " has no address")
		}
		if a = a.Unmap(); !a.IsUnspecified() {
			addrs = append(addrs, a)
			continue
		}
		all, err := net.InterfaceAddrs()
		if err != nil {
			return nil, err
		}
		for _, i := range all {
			if p, err := netip.ParsePrefix(i.String()); err == nil && p.Addr().Is4() == a.Is4() {
				addrs = append(addrs, p.Addr())
			}
		}
	}
	return addrs, nil
}
