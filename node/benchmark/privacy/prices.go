package privacy

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/privacy/price"
)

// Limits of the bars about ciphertexts.
const (
	aboveMasks   = 2 // bytes that an owner sends for ciphertexts, of those for masks
	ownerSeconds = 1 // of processor time for the ciphertext of an update
)

// prices adds to a report what each way to hide updates costs.
func (r *Report) prices(ctx context.Context, o Options) (err error) {
	if r.Prices, err = price.Measure(ctx, o.Price, o.Progress); err != nil {
		return err
	}
	wrong := 0.0
	for _, p := range r.Prices {
		if !p.Exact {
			wrong++
		}
	}
	masks, ciphers := r.Prices[1], r.Prices[2]
	r.Bars = append(r.Bars,
		benchmark.AtMost("ways to add updates whose sum differs from the plain one of the survivors", wrong, 0),
		benchmark.AtMost(fmt.Sprintf("bytes that an owner of %d sends for a ciphertext of %d weights, of those for masks",
			o.Price.Owners, o.Price.Weights), benchmark.Rounded(float64(ciphers.Sent)/float64(masks.Sent), 3), aboveMasks),
		benchmark.AtMost(fmt.Sprintf("processor seconds of an owner of %d for a ciphertext of %d weights and its part of "+
			"the sum", o.Price.Owners, o.Price.Weights), ciphers.Owner, ownerSeconds))
	return nil
}
