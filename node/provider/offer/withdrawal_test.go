package offer

import (
	"errors"
	"sync"
	"testing"
)

// A process that drains takes its offer back without waiting for a validator that does not answer, and again at the
// next block if that failed.
func TestWithdrawal(t *testing.T) {
	var working sync.WaitGroup
	answers := make(chan error)
	w := NewWithdrawal(func() error { return <-answers })
	w.Begin(&working) // returns without an answer
	w.Again(&working)
	gone := errors.New("gone")
	answers <- gone
	if w.End(<-w.Tried); w.Made {
		t.Error("a try that failed took the offer back")
	}
	w.Again(&working)
	w.Again(&working) // one try at a time
	answers <- nil
	if w.End(<-w.Tried); !w.Made {
		t.Error("the offer is taken back, and that is not noted")
	}
	w.Again(&working)
	working.Wait()
}
