package busy

import (
	"testing"
	"time"
)

// Computations of one class at the same time count once, and so do those of two classes in the sum.
func TestShares(t *testing.T) {
	var now time.Time
	m := New(func() time.Time { return now })
	pass := func(seconds int) { now = now.Add(time.Duration(seconds) * time.Second) }
	first := m.Begin(Training)
	pass(10)
	second, host := m.Begin(Training), m.Begin(Hosting)
	pass(10)
	first()
	pass(10)
	second()
	pass(20)
	host()
	pass(30)
	check := m.Begin(Verification) // is under way
	pass(20)
	classes, all := m.Shares()
	want := []Share{{Hosting, 40, 0.4}, {Training, 30, 0.3}, {Verification, 20, 0.2}}
	if len(classes) != len(want) || classes[0] != want[0] || classes[1] != want[1] || classes[2] != want[2] {
		t.Errorf("%+v, wanted %+v", classes, want)
	}
	if all != (Share{Seconds: 70, Share: 0.7}) {
		t.Errorf("all classes: %+v", all)
	}
	check()
}
