package privacy

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/privacy/price"
	"github.com/starling-network/starling/node/federated/sums"
)

// Limits of the bars about ciphertexts.
const (
	aboveMasks   = 2 // bytes that an owner sends for ciphertexts, of those for masks
	ownerSeconds = 1 // of processor time for the ciphertext of an update
	imageSeconds = 1 // of processor time of three parties and a client for an image
)

// prices adds to a report what each way to hide updates costs.
func (r *Report) prices(ctx context.Context, o Options) (err error) {
	if r.Prices, err = sums.Measure(ctx, o.Price, o.Progress); err != nil {
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
	return r.answers(ctx, o)
}

// answers adds what it costs to ask a model that three parties hold shares of.
func (r *Report) answers(ctx context.Context, o Options) (err error) {
	dir, err := os.MkdirTemp("", "starling-parties-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o.Progress("a model at three parties")
	if r.Answers, err = price.Answers(ctx, answered, dir); err != nil {
		return err
	}
	three := r.Answers[1]
	r.Bars = append(r.Bars,
		benchmark.AtMost(fmt.Sprintf("largest difference of a score of three parties from that of the model, of %d images; "+
			"the bar is the bound that is stated", answered), three.Away, three.Bound),
		benchmark.AtMost(fmt.Sprintf("processor seconds of three parties and a client for an image, with %d weights",
			three.Weights), three.Processor, imageSeconds))
	return nil
}

// answered is how many images parties are asked about.
const answered = 20
