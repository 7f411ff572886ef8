package untrusted

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// A server on a private address, which a stranger has named, gets no request unless the caller wants it.
func TestPrivateServersGetNoRequest(t *testing.T) {
	requests := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer s.Close()
	if _, err := NewClient(NewTransport(false)).Get(s.URL); !errors.Is(err, ErrPrivate) || requests != 0 {
		t.Errorf("%d requests, %v", requests, err)
	}
	if r, err := NewClient(NewTransport(true)).Get(s.URL); err != nil || r.Body.Close() != nil || requests != 1 {
		t.Errorf("%d requests, %v", requests, err)
	}
	t.Setenv("HTTP_PROXY", s.URL)
	if hosts := proxies(); len(hosts) > 1 {
		t.Errorf("the proxies are %v", hosts)
	}
}

func TestReachable(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "224.0.0.1": false, "255.255.255.255": false,
		"::1": false, "::": false, "fe80::1": false, "fd00::1": false, "::ffff:127.0.0.1": false,
		"64:ff9b::7f00:1": false, "ff02::1": false,
		"192.0.0.192": false, "198.18.0.1": false, "240.0.0.1": false, "168.63.129.16": false, "::7f00:1": false,
		"64:ff9b:1::a00:1": false, "2002:a00:1::1": false, "2001::1": false, "fec0::1": false,
	} {
		if got := reachable(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
