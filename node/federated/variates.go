package federated

import (
	"math"
	"slices"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/scaffold"
)

// variates are the control variates of the owners of a job of method scaffold. The coordinator knows only their sum.
type variates struct {
	sum   []*tensor.Tensor // nil: of another method
	since uint32           // round in which all were 0 the last time
}

// counts are the records of the rounds whose sums changed the variates since these were 0.
func (v variates) counts(rounds []Record) (all []Record) {
	for _, r := range rounds {
		if v.sum != nil && r.Round >= v.since && r.Void == "" {
			all = append(all, r)
		}
	}
	return all
}

// counted is the number of rounds of counts whose sums have an update of an owner.
func (v variates) counted(rounds []Record, owner string) (n uint32) {
	for _, r := range v.counts(rounds) {
		if slices.Contains(r.Sent, owner) {
			n++
		}
	}
	return n
}

// last maps each owner that has a variate to the index, in counts, of the last round whose sum has its update.
func (v variates) last(rounds []Record) map[string]int {
	last := map[string]int{}
	for i, r := range v.counts(rounds) {
		for _, o := range r.Sent {
			last[o] = i
		}
	}
	return last
}

// mean is the sum of the variates, divided by the number of owners that have one.
func (v variates) mean(rounds []Record) []*tensor.Tensor {
	return scaffold.Mean(v.sum, len(v.last(rounds)))
}

// idleSums is the number of sums in a row without an update of one owner after which all variates are set to 0. sample
// is the fraction of the owners that is asked in a round.
func idleSums(sample float64) int { return int(math.Ceil(10 / sample)) }

// forget sets all variates to 0 before a round, if the last idle sums have no update of an owner that has a variate.
// The variate of this owner estimates a gradient at old weights, and stays in the mean that corrects the steps of all
// owners. The coordinator does not know the variate of a single owner, so it cannot subtract that one from the sum.
func (v *variates) forget(rounds []Record, round uint32, idle int) {
	all := len(v.counts(rounds))
	for _, last := range v.last(rounds) {
		if all-1-last >= idle {
			v.sum, v.since = scaffold.Zeros(v.sum), round
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
