// Package offer changes the offer of a worker or verifier without blocking the goroutine that follows the blocks, which
// calls all methods: while the validator does not answer, the message waits. It takes the offer back when the process
// drains, and for as long as it is paused.
package offer

import "sync"

// Withdrawal takes an offer back for good.
type Withdrawal struct {
	try   func() error
	Tried chan error // what came of a try
	Made  bool       // the offer is taken back
	retry bool       // at the next block
}

// NewWithdrawal returns one that try makes.
func NewWithdrawal(try func() error) *Withdrawal {
	return &Withdrawal{try: try, Tried: make(chan error, 1)}
}

// Begin tries.
func (w *Withdrawal) Begin(working *sync.WaitGroup) { working.Go(func() { w.Tried <- w.try() }) }

// End records the result of a try.
func (w *Withdrawal) End(err error) { w.Made, w.retry = err == nil, err != nil }

// Again tries once more, if the last try failed.
func (w *Withdrawal) Again(working *sync.WaitGroup) {
	if w.retry {
		w.retry = false
		w.Begin(working)
	}
}
