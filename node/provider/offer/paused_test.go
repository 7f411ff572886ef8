package offer

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/starling-network/starling/node/pause"
)

// An offer is taken back for a pause and made again after it: one message at a time, and again after a failure. A pause
// that ends while the message waits is followed by another.
func TestPausedOffer(t *testing.T) {
	p, err := pause.Open(t.TempDir(), pause.Conditions{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var working sync.WaitGroup
	answers, sent := make(chan error), []uint32{}
	o := NewPaused(p, true, func(slots uint32) error {
		sent = append(sent, slots)
		return <-answers
	}, slog.New(slog.DiscardHandler))
	step := func() { o.Step(false, &working) }
	end := func(err error) {
		answers <- err
		o.End(<-o.Tried)
	}
	step() // nothing is to do
	if _, err := p.Pause(0); err != nil {
		t.Fatal(err)
	}
	<-o.Turned
	o.Turn()
	step()
	step() // one at a time
	end(errors.New("gone"))
	step()
	if _, err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	<-o.Turned
	o.Turn()
	step() // the message is under way
	end(nil)
	o.Step(true, &working) // withheld
	step()
	end(nil)
	step()
	working.Wait()
	if want := []uint32{0, 0, 1}; !slices.Equal(sent, want) {
		t.Errorf("it sent %v, want %v", sent, want)
	}
}
