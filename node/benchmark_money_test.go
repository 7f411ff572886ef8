package node

import (
	"testing"

	"github.com/starling-network/starling/node/benchmark/money"
)

// Each part is measured, a provider that ends loses no request, and adapters write the same alone and together.
func TestBenchMoney(t *testing.T) {
	r, err := money.Measure(t.Context(), money.Options{Threads: 1, Bytes: 1 << 20, Width: 64, Layers: 1, Tokens: 64,
		Leaves: 2, Requests: 2, Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	x, p, h, a := r.Exchange, r.Proven, r.Hosting, r.Adapters
	if x.Seal <= 0 || x.Check <= 0 || x.Unseal <= 0 || h.Local <= 0 || h.Gateway <= 0 || h.Requests != 2 || h.Lost != 0 ||
		h.Failovers != 1 || a.Adapters != 16 || a.Parameters == 0 || a.Together <= 0 || a.InTurn <= 0 || len(r.Bars) != 6 ||
		p.Setup <= 0 || p.Seal <= 0 || p.Open <= 0 || p.Check <= 0 || p.Leaves != 2 || p.Bytes < 192 {
		t.Errorf("%+v", r)
	}
}
