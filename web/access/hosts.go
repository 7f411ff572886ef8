package access

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/starling-network/starling/web/failure"
)

// Hosts are the names by which a server is reached, besides those of the loopback and addresses.
type Hosts []string

// Refuse returns why a request is refused that a page of another site makes the browser send, or nil: a request to a
// name that was made to point to this server, or one across origins.
func (h Hosts) Refuse(r *http.Request) error {
	if !h.named(r.Host) {
		return failure.New(http.StatusMisdirectedRequest, "HOST_UNKNOWN",
			fmt.Sprintf("the server is not called %q", r.Host),
			"use the address that it printed, or start it with --host "+hostname(r.Host))
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return failure.New(http.StatusForbidden, "CROSS_SITE", "the request comes from a page of another origin",
				"open the page of this server, or use a program")
		}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || site == "same-site") &&
		r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return failure.New(http.StatusForbidden, "CROSS_SITE", "the request comes from a page of another origin",
			"open the page of this server, or use a program")
	}
	return nil
}

// Loopback reports whether an address to listen on, host:port, is reached by programs of this machine alone. Of names
// it knows localhost.
func Loopback(listen string) (bool, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false, err
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}

func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// named reports whether a Host header names this server. An address does: names can be made to point here, addresses
// not.
func (h Hosts) named(hostport string) bool {
	host := strings.ToLower(strings.TrimSuffix(hostname(hostport), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(h, host)
}
