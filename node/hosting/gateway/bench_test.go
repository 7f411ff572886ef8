package gateway

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/starling-network/starling/internal/hostingtest"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/web/openai"
)

// BenchmarkGateway compares the tokens per second of answers of 200 tokens over HTTP: through a gateway with a
// provider, and from the server of the same model on this machine. The bar is 0.9.
func BenchmarkGateway(b *testing.B) {
	dir := hostingtest.FolderOf(b, 3, 512, 512, 8)
	e, err := serve.Open(dir, serve.Options{Name: "tiny"})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	n := &town{t: b, network: hostingtest.New(), model: dir, local: e, asked: map[string]*counter{}}
	n.host("a", 1_000_000, e, nil)
	g := n.gateway(func(c *Config) { c.Budget = 1 << 40 })
	server := func(m openai.Model) string {
		s := httptest.NewServer(openai.New(m, openai.Config{}))
		b.Cleanup(s.Close)
		return s.URL
	}
	local, through := server(e), server(g)
	took := map[string]time.Duration{}
	for i := range b.N {
		for _, at := range []string{local, through} {
			began := time.Now()
			post(b, at, fmt.Sprintf(`{"model":"tiny","prompt":"once upon","max_tokens":200,"seed":%d,"stream":true}`, i))
			took[at] += time.Since(began)
		}
	}
	b.ReportMetric(200*float64(b.N)/took[local].Seconds(), "tokens/s-local")
	b.ReportMetric(200*float64(b.N)/took[through].Seconds(), "tokens/s-gateway")
	b.ReportMetric(took[local].Seconds()/took[through].Seconds(), "ratio")
}
