package market

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
)

// The order with the largest locked budget is served first, then the earliest; the name and the price cap of a job
// have no effect.
func TestQueue(t *testing.T) {
	orders := []Order{
		{ID: "a", Budget: 100, At: 1, PriceCap: 1 << 63}, {ID: "b", Budget: 300, At: 9}, {ID: "c", Budget: 300, At: 2},
		{ID: "d", Budget: 200, At: 5}, {ID: "e", Budget: 200, At: 5},
	}
	first := map[string]int{}
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 64 {
		beacon := canon.Sum("beacon", []byte{byte(i)})
		r.Shuffle(len(orders), func(i, j int) { orders[i], orders[j] = orders[j], orders[i] })
		var ids []string
		for _, o := range Queue(orders, beacon) {
			ids = append(ids, o.ID)
		}
		if ids[0] != "c" || ids[1] != "b" || ids[4] != "a" || !slices.Contains(ids, "d") || !slices.Contains(ids, "e") {
			t.Fatalf("%v", ids)
		}
		first[ids[2]]++
	}
	if first["d"] < 16 || first["e"] < 16 {
		t.Errorf("of equal orders the beacon puts first %v", first)
	}
}
