package pipeline

import (
	"testing"

	"github.com/starling-network/starling/node/benchmark/routing"
)

// Stages that are dealt by speed keep unequal workers at work, and those that are dealt in turn wait for the slowest.
func TestDealsBySpeed(t *testing.T) {
	list, err := routing.Shares(routing.Settings[routing.Barred:routing.Barred+1], routed(1))
	if err != nil {
		t.Fatal(err)
	}
	if r := list[0]; r.Least < routing.Least || r.Speed < r.Least || r.Speed > 1 || r.Balance < r.Speed-0.001 ||
		r.Turn > 0.6 {
		t.Errorf("%+v", r)
	}
}
