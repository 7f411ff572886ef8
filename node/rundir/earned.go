package rundir

import "github.com/starling-network/starling/protocol/reward"

// JobSum is what somebody received and lost in a job, or from an epoch.
type JobSum struct {
	Job      string
	Received uint64 // uzen
	Lost     uint64 // uzen of stake
	Receipts int
	Unpaid   int // receipts of nothing
}

// ByJob sums receipts up by job, in the order of the first of each.
func ByJob(receipts []Explanation) (sums []JobSum) {
	index := map[string]int{}
	for _, r := range receipts {
		i, ok := index[r.Job]
		if !ok {
			i = len(sums)
			index[r.Job] = i
			sums = append(sums, JobSum{Job: r.Job})
		}
		s := &sums[i]
		s.Receipts++
		switch {
		case r.Kind == reward.Slash:
			s.Lost += r.Amount
		case r.Amount == 0:
			s.Unpaid++
		default:
			s.Received += r.Amount
		}
	}
	return sums
}
