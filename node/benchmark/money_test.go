package benchmark_test

import (
	"testing"

	"github.com/starling-network/starling/node/benchmark/money"
)

// Each part is measured, a provider that ends loses no request, and adapters write the same alone and together.
func TestMoney(t *testing.T) {
	r, err := money.Measure(t.Context(), money.Options{Threads: 1, Bytes: 1 << 20, Width: 64, Layers: 1, Tokens: 64,
		Requests: 2, Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	x, h, a := r.Exchange, r.Hosting, r.Adapters
	if x.Seal <= 0 || x.Check <= 0 || x.Unseal <= 0 || h.Local <= 0 || h.Gateway <= 0 || h.Requests != 2 || h.Lost != 0 ||
		h.Failovers != 1 || a.Adapters != 16 || a.Parameters == 0 || a.Together <= 0 || a.InTurn <= 0 || len(r.Bars) != 5 {
		t.Errorf("%+v", r)
	}
}
