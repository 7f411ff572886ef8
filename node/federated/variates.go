package federated

import (
	"math"
	"slices"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/scaffold"
)

// variates are the control variates of a job of method scaffold, of which the coordinator knows the sum alone.
type variates struct {
	sum   []*tensor.Tensor // nil: of another method
	since uint32           // round in which all were 0 the last time
}

// counts are the sums, of the records of rounds, whose increments are in the variates.
func (v variates) counts(rounds []Record) (all []Record) {
	for _, r := range rounds {
		if v.sum != nil && r.Round >= v.since && r.Void == "" {
			all = append(all, r)
		}
	}
	return all
}

// counted is the number of these sums that have an update of an owner.
func (v variates) counted(rounds []Record, owner string) (n uint32) {
	for _, r := range v.counts(rounds) {
		if slices.Contains(r.Sent, owner) {
			n++
		}
	}
	return n
}

// last is the place of the last of these sums with an update of each owner.
func (v variates) last(rounds []Record) map[string]int {
	last := map[string]int{}
	for i, r := range v.counts(rounds) {
		for _, o := range r.Sent {
			last[o] = i
		}
	}
	return last
}

// mean is that over the owners who have a variate.
func (v variates) mean(rounds []Record) []*tensor.Tensor {
	return scaffold.Mean(v.sum, len(v.last(rounds)))
}

// idleSums is how many sums in a row an owner may be missing in, where a fraction of the owners is asked in a round.
func idleSums(sample float64) int { return int(math.Ceil(10 / sample)) }

// forget begins again with variates of 0 before a round, if an owner who has one is in none of the last sums: its
// variate is one of old weights, and would pull the model forever. The coordinator cannot take it out of the sum, since
// it does not know it.
func (v *variates) forget(rounds []Record, round uint32, idle int) {
	all := len(v.counts(rounds))
	for _, last := range v.last(rounds) {
		if all-1-last >= idle {
			v.sum, v.since = scaffold.Zeros(v.sum), round
			return
		}
	}
}

// after are the variates after a sum of updates of a number of owners, with this mean.
func (v variates) after(mean, update []*tensor.Tensor, owners int, rates float64) variates {
	if v.sum != nil && rates > 0 {
		v.sum = scaffold.Sum(v.sum, mean, update, owners, rates)
	}
	return v
}
