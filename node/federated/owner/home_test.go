package owner

import (
	"errors"
	"math"
	"testing"
)

// The number of a round is on disk before its vector is sent, and no vector follows for that round, or one before.
func TestRoundsAreAnsweredOnce(t *testing.T) {
	dir := t.TempDir()
	h, err := OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := h.Name()
	if err := h.sends(h.use("job", "a", 1), 3); err != nil {
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
	u := h.use("job", "a", 1)
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
	first := h.use("one", "one", 10)
	if err := h.allow(first, 100, 4.8, 1e-5); err != nil { // 4.7527
		t.Error(err)
	}
	if err := h.allow(first, 100, 4.7, 1e-5); !errors.Is(err, ErrBudget) {
		t.Errorf("%v", err)
	}
	for round := range uint32(50) {
		if err := h.sends(first, round); err != nil {
			t.Fatal(err)
		}
	}
	second := h.use("two", "two", 10)
	if err := h.allow(second, 50, 4.8, 1e-5); err != nil {
		t.Error(err)
	}
	if err := h.allow(second, 60, 4.8, 1e-5); !errors.Is(err, ErrBudget) {
		t.Errorf("%v", err)
	}
	if err := h.allow(h.use("three", "three", 0), 1, 100, 1e-5); !errors.Is(err, ErrBudget) {
		t.Errorf("without noise: %v", err)
	}
	if err := h.sends(h.use("three", "three", 0), 0); err != nil {
		t.Fatal(err)
	}
	if err := h.allow(second, 1, 100, 1e-5); !errors.Is(err, ErrBudget) || !math.IsInf(h.Spent(1e-5), 1) {
		t.Errorf("after a job without noise: %v", err)
	}
}
