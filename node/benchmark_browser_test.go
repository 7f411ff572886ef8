package node

import (
	"testing"
	"time"

	"github.com/starling-network/starling/node/benchmark/browser"
)

// The measured server answers: every stream gets its events, every request its answer. Speed is not tested.
func TestWebIsMeasured(t *testing.T) {
	r, err := browser.Measure(t.Context(), browser.Options{Steps: 2000, Load: 200 * time.Millisecond,
		Rate: 200, Streams: 20})
	if err != nil {
		t.Fatal(err)
	}
	if r.Streams != 20 || r.P99MS < r.P50MS || r.P50MS <= 0 || r.PaintMS <= 0 || len(r.Bars) != 4 {
		t.Errorf("%+v", r)
	}
}
