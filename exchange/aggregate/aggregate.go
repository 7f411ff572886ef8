// Package aggregate combines the updates of a round into one: by coordinates, by distances between whole updates, or
// by a mean. Robust rules bound the effect of a minority of hostile updates on the result.
//
// Updates are taken in the order of their units, so the result depends neither on their workers nor on the order of
// arrival. The package does not know how updates travel (codec) or how the result is used (outer), and cannot be
// combined with secure aggregation: it reads every single update.
package aggregate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/compute/tensor"
)

// Names of rules, as in a work specification.
const (
	Mean            = "mean"
	TrimmedMean     = "trimmed_mean"     // Trim with the share of the specification
	Median          = "median"           // CoordinateMedian
	Krum            = "krum"             // Selection of one, with the largest number of presumed hostile updates
	MultiKrum       = "multi_krum"       // Selection of as many as it can vouch for
	GeometricMedian = "geometric_median" // Weiszfeld, 8 iterations
	CenteredClip    = "centered_clip"    // Clipping at the median distance, 5 iterations
	ClippedMean     = "clipped_mean"     // the mean after NormClip
	Contributors    = "contributor_mean" // ContributorMean, for sparse updates
)

var named = map[string]Rule{
	Mean: Average{}, Median: CoordinateMedian{}, Krum: Selection{Keep: 1}, MultiKrum: Selection{},
	GeometricMedian: Weiszfeld{Smooth: 1e-6, Iterations: 8}, CenteredClip: CenteredClipping{Iterations: 5},
	ClippedMean: NormClip{Average{}}, Contributors: ContributorMean{},
}

// ErrUpdates is returned for updates that cannot be combined.
var ErrUpdates = errors.New("aggregate: updates do not fit together")

// Update is the contribution of one unit to a round.
type Update struct {
	Unit    uint32
	Weight  float64          // such as the tokens it was computed from; an update of weight 0 does not take part
	Tensors []*tensor.Tensor // one per parameter, float32 and finite
}

// Rule is one way to combine updates; Combine applies it.
type Rule interface {
	// combine writes the combination of the rows to dst, which is zero. There is at least one row, in the order of units,
	// and none has weight 0. The rows stay as they are.
	combine(dst parts, rows []row) error
}

// parts are the elements of an update, one slice per parameter.
type parts [][]float32

type row struct {
	weight float64
	parts
}

// ByName returns the rule of a name in a work specification. trim is for TrimmedMean alone.
func ByName(name string, trim float64) (Rule, bool) {
	if name == TrimmedMean {
		return Trim{trim}, true
	}
	r, ok := named[name]
	return r, ok
}

// Known reports whether a rule of this name exists.
func Known(name string) bool { return name == TrimmedMean || named[name] != nil }

// ByCoordinate reports whether the rule of a name takes every coordinate by itself, so that any part of the result
// follows from the same part of the updates. The other rules measure whole updates.
func ByCoordinate(name string) bool {
	return name == Mean || name == TrimmedMean || name == Median || name == Contributors
}

// Combine returns the combination of the updates, which may be in any order and stay as they are. All must have the
// same shapes, and no unit may occur twice.
func Combine(r Rule, updates []Update) ([]*tensor.Tensor, error) {
	sorted := slices.SortedFunc(slices.Values(updates),
		func(a, b Update) int { return int(int64(a.Unit) - int64(b.Unit)) })
	var rows []row
	for i, u := range sorted {
		if err := fits(u, sorted[0]); err != nil {
			return nil, err
		}
		if i > 0 && u.Unit == sorted[i-1].Unit {
			return nil, fmt.Errorf("%w: two of unit %d", ErrUpdates, u.Unit)
		}
		if u.Weight > 0 {
			rows = append(rows, row{u.Weight, elements(u.Tensors)})
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrUpdates)
	}
	out := make([]*tensor.Tensor, len(sorted[0].Tensors))
	for i, t := range sorted[0].Tensors {
		out[i] = tensor.New(t.Shape)
	}
	return out, r.combine(elements(out), rows)
}

func fits(u, first Update) error {
	if !(u.Weight >= 0 && u.Weight <= 1<<53) {
		return fmt.Errorf("%w: unit %d has weight %v", ErrUpdates, u.Unit, u.Weight)
	}
	if len(u.Tensors) != len(first.Tensors) {
		return fmt.Errorf("%w: units %d and %d have %d and %d tensors", ErrUpdates, first.Unit, u.Unit, len(first.Tensors),
			len(u.Tensors))
	}
	for i, t := range u.Tensors {
		if s := first.Tensors[i].Shape; !t.Shape.Equal(s) {
			return fmt.Errorf("%w: shapes %v and %v", ErrUpdates, s, t.Shape)
		}
	}
	return nil
}

func elements(tensors []*tensor.Tensor) parts {
	p := make(parts, len(tensors))
	for i, t := range tensors {
		p[i] = t.F32()
	}
	return p
}

// like returns zeros of the sizes of p.
func (p parts) like() parts {
	q := make(parts, len(p))
	for i := range p {
		q[i] = make([]float32, len(p[i]))
	}
	return q
}
