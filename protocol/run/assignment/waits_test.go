package assignment

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// reached lists the workers of a replica that a worker waits for, directly or by others.
func reached(replica work.Units, worker string) (list []string) {
	for next := []string{worker}; len(next) > 0; next = next[1:] {
		for _, o := range replica {
			if slices.Contains(o.Missing, next[0]) && !slices.Contains(list, o.Worker) {
				list, next = append(list, o.Worker), append(next, o.Worker)
			}
		}
	}
	return list
}

// Workers wait for each other as the reports say, whatever these are.
func TestWorkersInCircles(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 300 {
		var replica work.Units
		workers, n := 1+r.Intn(8), 1+r.Intn(8)
		name := func() string { return fmt.Sprint("w", r.Intn(workers)) }
		for i := range n {
			u := &work.Unit{Index: uint32(i), Worker: name(), Status: work.Assigned}
			for range r.Intn(3) {
				u.Missing = append(u.Missing, name())
			}
			replica = append(replica, u)
		}
		g := waitsOf(replica)
		for _, u := range replica {
			all := reached(replica, u.Worker)
			circle := !slices.ContainsFunc(all, func(w string) bool {
				return !slices.Contains(reached(replica, w), u.Worker)
			})
			if g.waits(u) != (len(all) > 0) || g.inCircle(u) != circle {
				t.Fatalf("%s waits for %v", u.Worker, all)
			}
		}
	}
}

// As many workers as a replica may have, which all wait for each other, are found in a moment: each block may have many
// replicas that are late.
func TestCostOfCircles(t *testing.T) {
	var replica work.Units
	for i := range terms.MaxStages {
		u := &work.Unit{Index: uint32(i), Worker: fmt.Sprint("worker", i), Status: work.Assigned}
		for k := range terms.MaxStages {
			if k != i {
				u.Missing = append(u.Missing, fmt.Sprint("worker", k))
			}
		}
		replica = append(replica, u)
	}
	for range 1 << 10 / terms.MaxStages * 50 { // as many replicas as 50 runs may have
		if len(awaited(replica, true)) != terms.MaxStages {
			t.Fatal("some are not late")
		}
	}
}
