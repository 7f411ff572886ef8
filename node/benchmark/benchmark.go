// Package benchmark measures compute/: matrix products, training steps, and the losses that a training run goes
// through; network/: how fast blobs move between hosts, and how long control messages take meanwhile; chain/: what
// commitments cost; and exchange/: what strategies promise, and cost in loss.
//
// It times what it runs and returns numbers; what they are compared with, and whether they are good, is for others to
// say. It has no part in training a job: no peers but its own, no state that survives a call.
package benchmark

import (
	"errors"
	"fmt"
	"math"
)

// ErrOption wraps the refusal of an option that has no meaning.
var ErrOption = errors.New("benchmark")

func positive(name string, n int) error {
	if n < 1 {
		return fmt.Errorf("%w: %s is %d: give at least 1", ErrOption, name, n)
	}
	return nil
}

// rounded keeps a number of decimals of x.
func rounded(x float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(scale*x) / scale
}
