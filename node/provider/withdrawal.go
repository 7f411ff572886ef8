package provider

import "sync"

// withdrawal takes an offer back without blocking the goroutine that follows the blocks: while the validator does not
// answer, the withdrawal waits. All methods are called by that goroutine.
type withdrawal struct {
	try   func() error
	tried chan error // what came of a try
	made  bool       // the offer is taken back
	retry bool       // at the next block
}

func newWithdrawal(try func() error) *withdrawal {
	return &withdrawal{try: try, tried: make(chan error, 1)}
}

// begin tries.
func (w *withdrawal) begin(working *sync.WaitGroup) { working.Go(func() { w.tried <- w.try() }) }

// end records the result of a try.
func (w *withdrawal) end(err error) { w.made, w.retry = err == nil, err != nil }

// again tries once more, if the last try failed.
func (w *withdrawal) again(working *sync.WaitGroup) {
	if w.retry {
		w.retry = false
		w.begin(working)
	}
}
