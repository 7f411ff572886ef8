package owner

import (
	"errors"
	"math"
	"testing"

	"github.com/starling-network/starling/exchange/federated"
)

func ownersOf(epsilon float64) Budget { return Budget{federated.OfOwner, epsilon, 1e-5} }

// The number of a round is on disk before its vector is sent, and no vector follows for that round, or one before.
func TestRoundsAreAnsweredOnce(t *testing.T) {
	dir := t.TempDir()
	h, err := OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := h.Name()
	if err := h.sends(h.use("job", "a", federated.Spent{Noise: 1}), 3); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenHome(dir); err == nil {
		t.Error("two processes have one home")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if h, err = OpenHome(dir); err != nil || h.Name() != name {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	u := h.use("job", "a", federated.Spent{Noise: 1})
	for _, round := range []uint32{0, 3} {
		if err := h.sends(u, round); err == nil {
			t.Errorf("round %d has a second vector", round)
		}
	}
	if err := h.sends(u, 4); err != nil || u.Rounds != 2 {
		t.Errorf("%+v: %v", u, err)
	}
}

// A budget is of all jobs together.
func TestBudget(t *testing.T) {
	h, err := OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	first := h.use("one", "one", federated.Spent{Noise: 10})
	if err := h.allow(first, 100, ownersOf(4.8)); err != nil { // 4.7527
		t.Error(err)
	}
	if err := h.allow(first, 100, ownersOf(4.7)); !errors.Is(err, ErrBudget) {
		t.Errorf("%v", err)
	}
	for round := range uint32(50) {
		if err := h.sends(first, round); err != nil {
			t.Fatal(err)
		}
	}
	second := h.use("two", "two", federated.Spent{Noise: 10})
	if err := h.allow(second, 50, ownersOf(4.8)); err != nil {
		t.Error(err)
	}
	if err := h.allow(second, 60, ownersOf(4.8)); !errors.Is(err, ErrBudget) {
		t.Errorf("%v", err)
	}
	if err := h.allow(h.use("three", "three", federated.Spent{Noise: 0}), 1, ownersOf(100)); !errors.Is(err, ErrBudget) {
		t.Errorf("without noise: %v", err)
	}
	if err := h.sends(h.use("three", "three", federated.Spent{Noise: 0}), 0); err != nil {
		t.Fatal(err)
	}
	if err := h.allow(second, 1, ownersOf(100)); !errors.Is(err, ErrBudget) ||
		!math.IsInf(h.Spent(federated.OfOwner, 1e-5), 1) {
		t.Errorf("after a job without noise: %v", err)
	}
}

// The epsilon of an example and that of all data of an owner are two figures; a budget is of one of them.
func TestBudgetOfExamples(t *testing.T) {
	h, err := OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	// 1000 steps with a rate of 0.01 and noise of 1: 2.1078
	as := federated.Spent{ExampleNoise: 1, Rate: 0.01, Steps: 10}
	u := h.use("one", "one", as)
	example := Budget{federated.OfExample, 2.11, 1e-5}
	if err := h.allow(u, 100, example); err != nil {
		t.Error(err)
	}
	if err := h.allow(u, 101, example); !errors.Is(err, ErrBudget) {
		t.Errorf("%v", err)
	}
	if err := h.allow(u, 1, ownersOf(100)); !errors.Is(err, ErrBudget) {
		t.Errorf("noise for examples protects no owner: %v", err)
	}
	as.Rate = 0.02 // half of the examples are gone
	if u = h.use("one", "one", as); u.Rate != 0.02 {
		t.Errorf("%+v", u)
	}
	if err := h.allow(u, 100, example); !errors.Is(err, ErrBudget) {
		t.Errorf("%v", err)
	}
	other := h.use("two", "two", federated.Spent{Noise: 20}) // one example may turn an update round
	if e := h.projected(example, other, 100); math.Abs(e-4.7527) > 1e-4 {
		t.Errorf("epsilon %v", e)
	}
}
