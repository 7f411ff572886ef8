package fetch

import (
	"fmt"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
)

// TestByRate asks the fastest first, and peers of unknown rate before the slow ones.
func TestByRate(t *testing.T) {
	rates := map[peer.ID]float64{"slow": 1e6, "fast": 1e8, "medium": 1e7}
	rate := func(id peer.ID) float64 { return rates[id] }
	peers := []peer.ID{"slow", "new", "medium", "fast", "newer"}
	byRate(peers, rate)
	if got := fmt.Sprintf("%s", peers); got != fmt.Sprintf("%s", []peer.ID{"fast", "new", "medium", "newer", "slow"}) {
		t.Errorf("order %s", got)
	}
	for id, want := range map[peer.ID]int{"slow": 1, "fast": 23, "new": maxSpan} {
		if got := width(rate(id)); got != want {
			t.Errorf("%s: spans of %d leaves", string(id), got)
		}
	}
}
