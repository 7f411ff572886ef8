package federated

import (
	"math"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/scaffold"
)

// variates are the control variates of the owners of a job of method scaffold. The coordinator knows only their sum.
type variates struct {
	sum   []*tensor.Tensor // nil: of another method
	since uint32           // round in which all were 0 the last time
	sums  int              // since then, which changed the variates
	of    map[string]variate
}

// variate is what is known of that of one owner.
type variate struct {
	counted uint32 // sums that have its update
	last    int    // the last one of these
}

// count counts the record of a round: each sum changes the variates of the owners whose updates it has.
func (v *variates) count(r Record) {
	if v.sum == nil || r.Round < v.since || r.Void != "" {
		return
	}
	if v.of == nil {
		v.of = map[string]variate{}
	}
	for _, o := range r.Sent {
		v.of[o] = variate{v.of[o].counted + 1, v.sums}
	}
	v.sums++
}

// mean is the sum of the variates, divided by the number of owners that have one.
func (v variates) mean() []*tensor.Tensor { return scaffold.Mean(v.sum, len(v.of)) }

// idleSums is the number of sums in a row without an update of one owner after which all variates are set to 0. sample
// is the fraction of the owners that is asked in a round.
func idleSums(sample float64) int { return int(math.Ceil(10 / sample)) }

// forget sets all variates to 0 before a round, if the last idle sums have no update of an owner that has a variate.
// The variate of this owner estimates a gradient at old weights, and stays in the mean that corrects the steps of all
// owners. The coordinator does not know the variate of a single owner, so it cannot subtract that one from the sum.
func (v *variates) forget(round uint32, idle int) {
	for _, x := range v.of {
		if v.sums-1-x.last >= idle {
			*v = variates{sum: scaffold.Zeros(v.sum), since: round}
			return
		}
	}
}

// after returns the variates after a round with a sum: mean is the mean variate that the round announced, update is the
// mean update of a number of owners, and rates is that of scaffold.Rates.
func (v variates) after(mean, update []*tensor.Tensor, owners int, rates float64) variates {
	if v.sum != nil && rates > 0 {
		v.sum = scaffold.Sum(v.sum, mean, update, owners, rates)
	}
	return v
}
