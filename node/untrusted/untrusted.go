// Package untrusted makes HTTP clients for servers of strangers, whose URLs the strangers choose: a request must not
// reach a machine that only the client reaches. It makes no requests.
package untrusted

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"
)

// maxHeader is the most bytes of the header of an answer.
const maxHeader = 64 << 10

// ErrPrivate is for a server whose address is of this machine or of a private network.
var ErrPrivate = errors.New("untrusted: the server has an address of a private network")

// NewTransport returns a transport that connects to private addresses only if private is set. Behind a proxy
// (HTTPS_PROXY and the like) the proxy decides.
func NewTransport(private bool) *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: maxHeader}
	if !private {
		t.DialContext = public(proxies())
	}
	return t
}

// NewClient returns a client that follows no redirection, which would send a request to a machine of the server's
// choice.
func NewClient(t *http.Transport) *http.Client {
	return &http.Client{Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// proxies are the hosts and ports of the proxies of this process.
func proxies() (hosts []string) {
	for _, scheme := range []string{"http", "https"} {
		to := &http.Request{URL: &url.URL{Scheme: scheme, Host: "provider.example"}}
		if p, err := http.ProxyFromEnvironment(to); err == nil && p != nil {
			port := p.Port()
			if port == "" {
				port = map[string]string{"http": "80", "https": "443"}[p.Scheme]
			}
			if port == "" {
				port = "1080" // SOCKS
			}
			hosts = append(hosts, net.JoinHostPort(p.Hostname(), port))
		}
	}
	return hosts
}

// public dials addresses that the whole internet reaches, and the proxies. It dials the address that it has looked at,
// so that a name that changes its address gains nothing.
func public(proxies []string) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 30 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if slices.Contains(proxies, address) {
			return d.DialContext(ctx, network, address)
		}
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, err
		}
		err = fmt.Errorf("%w: %v", ErrPrivate, all)
		for _, a := range slices.DeleteFunc(all, func(a netip.Addr) bool { return !reachable(a) }) {
			var conn net.Conn
			if conn, err = d.DialContext(ctx, network, net.JoinHostPort(a.String(), port)); err == nil {
				return conn, nil
			}
		}
		return nil, err
	}
}

// Ranges that are not of the whole internet, and that netip does not know (RFC 6890): carrier-grade translators, "this
// network", protocol assignments, benchmarks, reserved addresses; the metadata server of Azure; and IPv4 addresses in
// IPv6 ones, which a translator or a tunnel of the network resolves (RFC 4291, 6052, 8215, 3056, 4380).
var inside = prefixes("100.64.0.0/10", "0.0.0.0/8", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "168.63.129.16/32",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "fec0::/10")

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, t := range texts {
		all = append(all, netip.MustParsePrefix(t))
	}
	return all
}

// reachable reports whether an address is of the whole internet.
func reachable(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsGlobalUnicast() && !a.IsPrivate() &&
		!slices.ContainsFunc(inside, func(p netip.Prefix) bool { return p.Contains(a) })
}
