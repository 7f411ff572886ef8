package pipeline

import "testing"

// Stages that are dealt by speed keep unequal workers at work, and those that are dealt in turn wait for the slowest.
func TestRoutingBySpeed(t *testing.T) {
	list, err := routed(1, routings[barRouting:barRouting+1])
	if err != nil {
		t.Fatal(err)
	}
	if r := list[0]; r.Least < leastRouted || r.Speed < r.Least || r.Speed > 1 || r.Balance < r.Speed-0.001 ||
		r.Turn > 0.6 {
		t.Errorf("%+v", r)
	}
}
