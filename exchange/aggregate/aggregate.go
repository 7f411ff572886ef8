// Package aggregate combines the updates of a round into one, coordinate by coordinate. The order of the updates is
// the order of the units, so the result does not depend on who did them or when they arrived.
package aggregate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/compute/tensor"
)

// Names of rules, as in a work specification.
const (
	Mean        = "mean"
	TrimmedMean = "trimmed_mean" // Yin et al. 2018: the mean without the largest and smallest share of every coordinate
)

// ErrUpdates is returned for updates that cannot be combined.
var ErrUpdates = errors.New("aggregate: updates do not fit together")

// Known reports whether a rule of this name exists.
func Known(rule string) bool { return rule == Mean || rule == TrimmedMean }

// Combine returns the combination of one tensor's updates. All must have one shape. trim is the share of the updates
// that TrimmedMean leaves out at each end, rounded down to whole updates.
func Combine(rule string, trim float64, updates []*tensor.Tensor) (*tensor.Tensor, error) {
	if len(updates) == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrUpdates)
	}
	for _, u := range updates {
		if !u.Shape.Equal(updates[0].Shape) {
			return nil, fmt.Errorf("%w: shapes %v and %v", ErrUpdates, updates[0].Shape, u.Shape)
		}
	}
	cut := 0
	if rule == TrimmedMean {
		cut = min(int(trim*float64(len(updates))), (len(updates)-1)/2)
	}
	out := tensor.New(updates[0].Shape)
	if cut == 0 {
		mean(out.F32(), updates)
	} else {
		trimmed(out.F32(), updates, cut)
	}
	return out, nil
}

// mean adds in the order of the updates from +0 and multiplies by the rounded reciprocal of their number.
func mean(dst []float32, updates []*tensor.Tensor) {
	for _, u := range updates {
		for i, v := range u.F32() {
			dst[i] += v
		}
	}
	scale(dst, len(updates))
}

func trimmed(dst []float32, updates []*tensor.Tensor, cut int) {
	column := make([]float32, len(updates))
	for i := range dst {
		for j, u := range updates {
			column[j] = u.F32()[i]
		}
		slices.Sort(column)
		for _, v := range column[cut : len(column)-cut] {
			dst[i] += v
		}
	}
	scale(dst, len(updates)-2*cut)
}

func scale(dst []float32, n int) {
	inverse := 1 / float32(n)
	for i := range dst {
		dst[i] *= inverse
	}
}
