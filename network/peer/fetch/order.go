package fetch

import (
	"cmp"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/blob"
)

// byRate orders peers for a download: the fastest first, those that are not known before those known to be slower than
// most, and in the given order among equals.
func byRate(peers []peer.ID, rate func(peer.ID) float64) {
	rates := make(map[peer.ID]float64, len(peers))
	var known []float64
	for _, id := range peers {
		if r := rate(id); r > 0 {
			rates[id] = r
			known = append(known, r)
		}
	}
	if len(known) == 0 {
		return
	}
	slices.Sort(known)
	middle := known[len(known)/2]
	for _, id := range peers {
		if rates[id] == 0 {
			rates[id] = middle
		}
	}
	slices.SortStableFunc(peers, func(a, b peer.ID) int { return cmp.Compare(rates[b], rates[a]) })
}

// spanTime is how long a peer should take for a span: then the slowest do not hold much when the others are done.
const spanTime = 500 * time.Millisecond

// width is the number of leaves to ask a peer for at a time, by its measured rate in bytes a second (0: not known).
func width(rate float64) int {
	if rate == 0 {
		return maxSpan
	}
	return max(1, int(rate*spanTime.Seconds()/streamsPerPeer/blob.LeafBytes))
}
