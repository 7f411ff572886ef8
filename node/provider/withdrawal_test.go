package provider

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
	w := newWithdrawal(func() error { return <-answers })
	w.begin(&working) // returns without an answer
	w.again(&working)
	gone := errors.New("gone")
	answers <- gone
	if w.end(<-w.tried); w.made {
		t.Error("a try that failed took the offer back")
	}
	w.again(&working)
	w.again(&working) // one try at a time
	answers <- nil
	if w.end(<-w.tried); !w.made {
		t.Error("the offer is taken back, and that is not noted")
	}
	w.again(&working)
	working.Wait()
}
