package federated

import "github.com/starling-network/starling/exchange/federated"

// tally is what the records of the rounds add up to. It grows with the number of owners, and not with that of rounds.
type tally struct {
	sums, void, faults int
	cohort             int // the smallest of a sum; 0: there is none
	dropouts           map[federated.Phase]int
	sent               map[string]uint32 // rounds in which an owner sent a vector
	loss               *float64          // measured last
	measured           map[string]float64
}

// add counts the record of a round.
func (t *tally) add(r Record) {
	if t.sent == nil {
		t.dropouts, t.sent = map[federated.Phase]int{}, map[string]uint32{}
	}
	if t.faults += len(r.Faults); r.Void != "" {
		t.void++
	} else if t.sums++; t.cohort == 0 || r.Cohort < t.cohort {
		t.cohort = r.Cohort
	}
	for p, n := range r.Dropouts {
		t.dropouts[p] += n
	}
	for _, o := range r.Sent {
		t.sent[o]++
	}
	if r.Loss != nil {
		t.loss, t.measured = r.Loss, r.Measured
	}
}

// most is the largest number of rounds in which one owner sent a vector.
func (t *tally) most() (most uint32) {
	for _, n := range t.sent {
		most = max(most, n)
	}
	return most
}
