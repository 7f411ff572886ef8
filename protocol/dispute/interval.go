package dispute

import (
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Ways is into how many parts one move narrows an interval, at most.
const Ways = 64

// Interval is a range of a sequence of states, each of which follows from the one before: from a state that both
// parties agree on to a later one on which they do not.
type Interval struct {
	From  uint64         `cbor:"1,keyasint"` // position of the last agreed state
	To    uint64         `cbor:"2,keyasint"` // and of the first disputed one
	Prior canon.Digest   `cbor:"3,keyasint"` // the agreed state; zero where it is nothing yet
	After canon.Digest   `cbor:"4,keyasint"` // the asserter's claim of the disputed state
	Shown []canon.Digest `cbor:"5,keyasint,omitempty"`
}

// single reports whether there is no state between the two.
func (v Interval) single() bool { return v.To-v.From <= 1 }

// Boundaries lists the positions of the states that the asserter shows next, evenly spread between the two: as few as
// narrow the interval to one in the fewest moves, and fewer than Ways.
func (v Interval) Boundaries() []uint64 {
	n := v.To - v.From
	moves := 1
	for power(Ways, moves) < n {
		moves++
	}
	ways := uint64(1)
	for power(ways, moves) < n {
		ways++
	}
	var out []uint64
	for i := uint64(1); i < ways; i++ {
		out = append(out, v.From+n/ways*i+n%ways*i/ways)
	}
	return out
}

// power saturates.
func power(x uint64, n int) uint64 {
	p := uint64(1)
	for range n {
		if x > 0 && p > (1<<63)/x {
			return 1 << 63
		}
		p *= x
	}
	return p
}

// show takes the states at the Boundaries.
func (v Interval) show(states []canon.Digest) (Interval, error) {
	if n := len(v.Boundaries()); len(states) != n {
		return v, fmt.Errorf("%w: %d states, wanted %d", ErrMove, len(states), n)
	}
	v.Shown = states
	return v, nil
}

// pick narrows the interval to the one before state i of those shown, or before the disputed state, which comes after
// them.
func (v Interval) pick(i uint32) (Interval, error) {
	at := v.Boundaries()
	if i > uint32(len(v.Shown)) || len(v.Shown) != len(at) {
		return v, fmt.Errorf("%w: no state %d among the %d shown", ErrMove, i, len(v.Shown))
	}
	next := Interval{From: v.From, To: v.To, Prior: v.Prior, After: v.After}
	if i > 0 {
		next.From, next.Prior = at[i-1], v.Shown[i-1]
	}
	if i < uint32(len(at)) {
		next.To, next.After = at[i], v.Shown[i]
	}
	return next, nil
}
