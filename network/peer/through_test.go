package peer

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
)

// A host that reaches a proxy alone fetches through it, and one that the proxy does not connect finds no peer.
func TestThroughAProxy(t *testing.T) {
	t.Parallel()
	var tunnels atomic.Int64
	var closed atomic.Bool
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || closed.Load() {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		to, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer to.Close()
		tunnels.Add(1)
		from, rest, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer from.Close()
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, rest) }()
		_, _ = io.Copy(from, to)
	}))
	t.Cleanup(proxy.Close)
	at := strings.TrimPrefix(proxy.URL, "http://")
	data := blobtest.Data(90, 3*blob.LeafBytes)
	source := start(t, Config{})
	put(t, source, data)
	t.Cleanup(proxy.CloseClientConnections)
	inside := start(t, Config{Through: at})
	wantFetch(t, inside, data, source.Addrs())
	if tunnels.Load() == 0 {
		t.Error("it fetched without the proxy")
	}
	for _, a := range inside.Addrs() {
		if strings.Contains(a, "/quic") {
			t.Errorf("it listens at %s", a)
		}
	}
	closed.Store(true)
	refused := start(t, Config{Through: at})
	if err := refused.Connect(t.Context(), source.Addrs()[0]); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("refused by the proxy: %v", err)
	}
}
