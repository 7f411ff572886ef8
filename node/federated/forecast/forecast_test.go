package forecast_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/starling-network/starling/client/job"
	protocol "github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/forecast"
	"github.com/starling-network/starling/node/federated/owner"
	"github.com/starling-network/starling/node/federated/wire"
	"github.com/starling-network/starling/node/prepare"
)

// load compiles the example, with other values of some keys.
func load(t *testing.T, set ...string) *prepare.CompiledJob {
	t.Helper()
	j, err := job.ReadFederated("../../../examples/federated.yaml", set...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := prepare.New(j)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// counted adds up the bodies of the weights and of the messages of phases that pass it.
type counted struct{ sent, received atomic.Int64 }

// RoundTrip implements http.RoundTripper.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	message, weights := strings.HasSuffix(r.URL.Path, "/message"), strings.HasSuffix(r.URL.Path, "/model")
	if message {
		c.sent.Add(r.ContentLength)
	}
	a, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && a.StatusCode == http.StatusOK && (message || weights) {
		a.Body = &reader{a.Body, &c.received}
	}
	return a, err
}

type reader struct {
	io.ReadCloser
	n *atomic.Int64
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	r.n.Add(int64(n))
	return n, err
}

// Five owners over HTTP have the traffic and the epsilon of the plan of the example, by masks and by ciphertexts.
func TestAPlanIsThatOfARun(t *testing.T) {
	for _, updates := range []string{"masked", "encrypted"} {
		b := load(t, "federated.updates="+updates, "federated.noise.multiplier=1", "training.max_steps=4",
			"strategy.sync_steps=2", "training.warmup_steps=0", "federated.min_cohort=5", "strategy.round_timeout=5m")
		p, err := forecast.Of(t.Context(), b, 0, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		c, err := federated.New(b, federated.Options{Dir: t.TempDir(), Phase: 5 * time.Minute, Threads: 1,
			Say: func(string) {}})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(wire.Handler(c, c.Job(), wire.Wall{}))
		defer server.Close()
		text, err := os.ReadFile("../../../examples/messages/messages.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		var traffic [5]counted
		var running sync.WaitGroup
		for i := range traffic {
			dir := t.TempDir()
			if err := errors.Join(os.MkdirAll(filepath.Join(dir, "messages"), 0o755),
				os.WriteFile(filepath.Join(dir, "messages", "messages.jsonl"), text, 0o644)); err != nil {
				t.Fatal(err)
			}
			running.Go(func() {
				h, err := owner.OpenHome(t.TempDir())
				if err == nil {
					defer h.Close()
					_, err = owner.Join(t.Context(), owner.Options{URL: server.URL, HTTP: &http.Client{Transport: &traffic[i]},
						Home: h, Data: dir, Threads: 1, Budget: owner.Budget{Unit: protocol.OfOwner, Delta: 1e-5},
						Retry: time.Minute, Say: func(string) {}})
				}
				if err != nil {
					t.Errorf("owner %d: %v", i, err)
				}
			})
		}
		r, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.Linger(t.Context(), time.Minute)
		running.Wait()
		if r.Epsilon == nil || p.Epsilon == nil || *r.Epsilon != *p.Epsilon || r.Delta != p.Delta || r.Example != nil ||
			p.Example != nil {
			t.Errorf("%s: the plan has epsilon %v, the run %v", updates, p.Epsilon, r.Epsilon)
		}
		for i := range traffic {
			x := &traffic[i]
			sent, received := x.sent.Load()/int64(p.Rounds), x.received.Load()/int64(p.Rounds)
			if sent != p.Owner.Sent || received != p.Owner.Received {
				t.Errorf("%s: owner %d sends %d bytes and receives %d in a round; planned %d and %d", updates, i, sent, received,
					p.Owner.Sent, p.Owner.Received)
			}
		}
	}
}

// The plan has a row for each way, and an update that is larger than the measured one costs more in each of them.
func TestAPlanOfLargeUpdates(t *testing.T) {
	const base = 1 << 20
	for _, hidden := range []int{32, 96} {
		b := load(t, fmt.Sprintf("model.config.hidden_size=%d", hidden))
		p, err := forecast.Of(t.Context(), b, base, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		least := []int{4 * (p.Weights + 1), 4 * (p.Weights + 1), 6*(p.Weights+1) + 8192}
		for i, r := range p.Ways {
			if r.Weights != p.Weights || r.Sent < least[i] || r.Sent > least[i]+4096 || r.Summed != 5 || !r.Exact {
				t.Errorf("%+v, wanted %d bytes and a little", r, least[i])
			}
		}
		if len(p.Ways) != 3 || len(p.Others) != 2 || p.StepSeconds <= 0 || p.Seconds <= 0 || p.Epsilon != nil ||
			p.Owner.Memory < base+uint64(p.Weights)*28 || p.Coordinator.Disk < int64(p.Weights)*4 {
			t.Errorf("%+v", p)
		}
	}
}
