package pages

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/starling-network/starling/node/hosting"
)

// A reader writes no file that a program takes for settings, and pays for no page that it cannot write.
func TestNamesOfStrangers(t *testing.T) {
	for _, names := range [][]string{{".bashrc"}, {".git/hooks/post-checkout"}, {"a/.ssh/keys"}, {"a", "a-b", "a/b"},
		{"a", "a/b/c"}} {
		m := Manifest{Page: MinPage, Digests: make([]byte, 32)}
		for _, n := range names {
			m.Files = append(m.Files, File{n, 3})
		}
		if _, err := Decode(m.Encode()); !errors.Is(err, ErrManifest) {
			t.Errorf("%q: %v", names, err)
		}
	}
	m := Manifest{Page: MinPage, Files: []File{{"a/b", 1}, {"a/c.d", 1}, {"a.", 1}, {"ab", 1}}, Digests: make([]byte, 32)}
	m.Files[0], m.Files[1], m.Files[2] = m.Files[2], m.Files[0], m.Files[1]
	if _, err := Decode(m.Encode()); err != nil {
		t.Error(err)
	}
}

// The manifest is free: an address reads it often, and not without end.
func TestManifestsAreBounded(t *testing.T) {
	n := begin(t)
	s := NewSeller(n.m, nil, Terms{}, &hosting.Vouchers{}, nil)
	now := time.Unix(1000, 0)
	s.free.now = func() time.Time { return now }
	handler, size := s.Handler(), len(n.m.Encode())
	get := func(from string) int {
		r := httptest.NewRequest(http.MethodGet, pathManifest, nil)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") != "61" {
			t.Errorf("wait for %q seconds", w.Header().Get("Retry-After"))
		}
		return w.Code
	}
	if wait := s.free.take("[2001:db8::1]:9", freeBytes-size); wait != 0 {
		t.Fatal(wait)
	}
	for from, want := range map[string]int{"[2001:db8::1]:9": 200, "203.0.113.1:1": 200, "[2001:db8:0:1::1]:9": 200} {
		if got := get(from); got != want {
			t.Errorf("%s: status %d", from, got)
		}
	}
	if got := get("[2001:db8::ffff]:10"); got != http.StatusTooManyRequests {
		t.Errorf("beyond the allowance: status %d", got)
	}
	if now = now.Add(window); get("[2001:db8::1]:9") != 200 {
		t.Error("a minute later it is not answered")
	}
	if wait := s.free.take("198.51.100.1:1", 2*freeBytes); wait != 0 { // the largest manifest is answered once
		t.Error(wait)
	}
	for i := range addresses {
		s.free.take(fmt.Sprintf("10.%d.%d.1:1", i>>8, i&255), 1)
	}
	if len(s.free.read) > addresses {
		t.Errorf("%d addresses", len(s.free.read))
	}
}
