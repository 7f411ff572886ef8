package federated

import (
	"strings"

	"github.com/starling-network/starling/compute/model/architecture"
)

// Trains reports whether owners train a tensor in a round. The factors of an adapter, whose product B·A is added to a
// weight, take turns: B in the first round and in each second one after it, A in the others. The other factor is the
// same for all owners, so the product with the mean factor is the mean of the products (docs/adr/0203).
func Trains(name string, round uint32) bool {
	switch {
	case strings.HasSuffix(name, architecture.UpSuffix):
		return round%2 == 0
	case strings.HasSuffix(name, architecture.DownSuffix):
		return round%2 == 1
	}
	return true
}

// Turn are the places of the tensors, in a list of names, that owners train in a round.
func Turn(names []string, round uint32) (at []int) {
	for i, n := range names {
		if Trains(n, round) {
			at = append(at, i)
		}
	}
	return at
}
