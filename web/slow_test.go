package web

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/sourcetest"
)

// stalled is a connection on which so much is sent, and no more, and from which nothing is read.
func stalled(t *testing.T, address, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// A client that stalls in a request loses its connection, and gets the reason if there is a request to answer; others
// are answered meanwhile.
func TestStalledRequestsEnd(t *testing.T) {
	t.Parallel()
	address, _ := listener(t, server(t,
		Config{Launcher: &sourcetest.Launcher{}, Models: sourcetest.Model{},
			Limits: Limits{Header: time.Second, Body: time.Second}}))
	var silent, late []net.Conn
	for _, text := range []string{"", "GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\nX: ", "PRI * HTTP/2.0\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00"} {
		silent = append(silent, stalled(t, address, text))
	}
	for _, path := range []string{"/v1/jobs", "/v1/plans", "/v1/completions"} {
		late = append(late, stalled(t, address, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
			"application/json\r\nContent-Length: 100\r\n\r\n{", path)))
	}
	if a, err := http.Get("http://" + address + "/v1/health"); err != nil || a.StatusCode != http.StatusOK ||
		a.Body.Close() != nil {
		t.Errorf("beside requests that stall: %v %v", a, err)
	}
	for _, c := range silent {
		_, _ = io.Copy(io.Discard, c) // returns when the server has hung up
	}
	for _, c := range late {
		if text, _ := io.ReadAll(c); !strings.HasPrefix(string(text), "HTTP/1.1 408 ") ||
			!strings.Contains(strings.ToUpper(string(text)), `"BODY_LATE"`) {
			t.Errorf("a body that stalls: %.400q", text)
		}
	}
}

// A stream without a reader ends, and another stream gets every event.
func TestUnreadStreamsEnd(t *testing.T) {
	t.Parallel()
	lib := sourcetest.New()
	s := server(t, Config{Runs: lib, Limits: Limits{Write: time.Second}})
	address, _ := listener(t, s)
	unread := stalled(t, address, "GET /v1/jobs/first/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	r := listen(t, address, "/v1/jobs/first/events", "")
	r.next(t)
	// small for a connection that is read, and in sum more than the buffers of one that is not
	text := strings.Repeat("x", 32<<10)
	for n := uint32(0); s.streams.Counts().Late == 0; n++ {
		lib.Put("first", func(h *source.History) { h.Samples = append(h.Samples, api.Sample{Round: n, Text: text}) })
		if e := r.next(t); len(e.update.Samples) != 1 || e.update.Samples[0].Round != n {
			t.Fatalf("event %d of who reads has %d samples", n, len(e.update.Samples))
		}
	}
	_, _ = io.Copy(io.Discard, unread) // returns when the server has hung up
}
