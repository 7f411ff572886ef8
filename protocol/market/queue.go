package market

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/starling-network/starling/canon"
)

// Queue sorts orders as they are served: the largest budget first (Order.Rank), then the earliest, then as the beacon
// of the block draws. The price cap of an order has no effect, since it costs nothing. The order given does not matter;
// each job is in it once.
func Queue(orders []Order, beacon canon.Digest) []Order {
	type place struct {
		Order
		draw canon.Digest
	}
	queue := make([]place, len(orders))
	for i, o := range orders {
		queue[i] = place{o, canon.Sum("starling/queue/1", beacon[:], []byte(o.ID))}
	}
	slices.SortFunc(queue, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.Rank(), a.Rank()), cmp.Compare(a.At, b.At), bytes.Compare(a.draw[:], b.draw[:]))
	})
	sorted := make([]Order, len(orders))
	for i, p := range queue {
		sorted[i] = p.Order
	}
	return sorted
}
