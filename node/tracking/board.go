package tracking

import (
	"errors"
	"os"
	"time"

	"github.com/starling-network/starling/client/api"
)

// TensorBoardWriter writes a folder of TensorBoard during a run, and never blocks its caller. Entries that arrive
// while the queue is full are dropped and counted. The methods of a nil TensorBoardWriter do nothing.
type TensorBoardWriter struct {
	queue   chan entry
	done    chan struct{}
	dropped int // metrics
	failed  func(err error, dropped int)
}

// An entry is metrics to write, or the step from which what was written counts no more.
type entry struct {
	metrics []api.Metric
	restart bool
	step    uint32
	at      time.Time
}

const (
	boardQueue   = 256 // entries
	boardTimeout = 2 * time.Second
)

// OpenBoard begins to write a file in a folder for what comes from the given step on. failed is called once at most:
// with the error that ended the writing, if there was one, and the number of metrics that were left out.
func OpenBoard(dir string, step uint32, failed func(err error, dropped int)) *TensorBoardWriter {
	b := &TensorBoardWriter{queue: make(chan entry, boardQueue), done: make(chan struct{}), failed: failed}
	at := time.Now()
	go func() {
		defer close(b.done)
		err := b.write(dir, step, at)
		lost := 0
		for e := range b.queue { // after an error
			lost += len(e.metrics)
		}
		if lost += b.dropped; err != nil || lost > 0 {
			failed(err, lost)
		}
	}()
	return b
}

func (b *TensorBoardWriter) write(dir string, step uint32, at time.Time) (err error) {
	var f *os.File
	if f, err = CreateEvents(dir, at); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	events, err := NewEvents(f, step, at)
	if err != nil {
		return err
	}
	for e := range b.queue {
		if e.restart {
			err = events.Restart(e.step, e.at)
		}
		for _, m := range e.metrics {
			err = errors.Join(err, events.Add(m, e.at))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Add writes metrics some time.
func (b *TensorBoardWriter) Add(metrics []api.Metric) {
	if b != nil {
		b.put(entry{metrics: metrics, at: time.Now()})
	}
}

// Restart makes what was written about the given step and later ones count no more.
func (b *TensorBoardWriter) Restart(step uint32) {
	if b != nil {
		b.put(entry{restart: true, step: step, at: time.Now()})
	}
}

func (b *TensorBoardWriter) put(e entry) {
	select {
	case b.queue <- e:
	default:
		b.dropped += len(e.metrics)
	}
}

// Close lets the writer finish for a moment. No entry may be added afterwards.
func (b *TensorBoardWriter) Close() {
	if b == nil {
		return
	}
	close(b.queue)
	select {
	case <-b.done:
	case <-time.After(boardTimeout): // its disk hangs
	}
}
