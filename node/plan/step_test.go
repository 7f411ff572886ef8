package plan

import (
	"errors"
	"testing"
)

// The shortest try counts, but for the first; each is made ready; an error ends them.
func TestShortestTry(t *testing.T) {
	readied, done := 0, 0
	work := func(n int) (sum int) {
		for i := range n {
			sum += i & done
		}
		return sum
	}
	sums := 0
	seconds, err := shortest(1, func() error {
		done++
		if done == 1 || done == 3 { // the first, and one that is not the shortest
			sums += work(200_000_000)
		}
		return nil
	}, func() error { readied++; return nil })
	if err != nil || done < 2 || readied != done || seconds > 0.02 {
		t.Errorf("%v seconds after %d tries, %d of them ready: %v (%d)", seconds, done, readied, err, sums)
	}
	failed := errors.New("failed")
	if _, err := shortest(1, func() error { return failed }, nil); !errors.Is(err, failed) {
		t.Errorf("ended with %v", err)
	}
	if _, err := shortest(1, nil, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("ended with %v", err)
	}
}
