package mlflow

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/tracking"
)

// How a run of the server ends.
const (
	Finished = "FINISHED"
	Failed   = "FAILED"
	Killed   = "KILLED"
)

const (
	queueLength = 1024    // calls of Add
	maxPending  = 200_000 // metrics kept for a server that is away
	maxRetry    = 30 * time.Second
)

// Writer sends the metrics of one run. The methods of a nil Writer do nothing.
type Writer struct {
	Config
	server *remote
	queue  chan []metric
	status chan string
	done   chan struct{}
	cancel context.CancelFunc

	dropped int // of the queue; read when the queue is closed

	// of the goroutine that sends
	experiment, id string
	params         []pair // not sent yet
	pending        []metric
	lost           int
	away           bool
	began          time.Time
}

// Open begins to send. The error says that the address is none; a server that is away is no error.
func Open(c Config) (*Writer, error) {
	a, err := dial(c.URI)
	if err != nil {
		return nil, err
	}
	if c.Experiment == "" {
		c.Experiment = "Default"
	}
	if c.Retry == 0 {
		c.Retry = time.Second
	}
	if c.CloseTimeout == 0 {
		c.CloseTimeout = 5 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &Writer{Config: c, server: a, queue: make(chan []metric, queueLength), status: make(chan string, 1),
		done: make(chan struct{}), cancel: cancel, params: pairs(c.Params), began: time.Now()}
	go w.send(ctx)
	return w, nil
}

// pairs are settings in order of their names. A value that is too long is cut off.
func pairs(of map[string]string) (out []pair) {
	for _, k := range slices.Sorted(maps.Keys(of)) {
		v := of[k]
		if len(v) > maxValue {
			v = strings.ToValidUTF8(v[:maxValue], "")
		}
		out = append(out, pair{k, v})
	}
	return out
}

// Add sends metrics some time.
func (w *Writer) Add(metrics []api.Metric) {
	if w == nil {
		return
	}
	now := time.Now()
	var out []metric
	for _, m := range metrics {
		at := now
		if !m.Time.IsZero() {
			at = m.Time
		}
		for _, s := range tracking.Scalars(m) {
			if !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) { // JSON has none
				out = append(out, metric{s.Name, s.Value, at.UnixMilli(), int64(m.Step)})
			}
		}
	}
	select {
	case w.queue <- out:
	default:
		w.dropped += len(out)
	}
}

// Close ends the run of the server, and gives the server a moment to take in what it lacks. Nothing may be added any
// more.
func (w *Writer) Close(status string) {
	if w == nil {
		return
	}
	w.status <- status
	close(w.queue)
	late := time.AfterFunc(w.CloseTimeout, w.cancel)
	<-w.done
	late.Stop()
	w.cancel()
	if w.lost += w.dropped; w.lost > 0 && w.Failed != nil {
		w.Failed(errors.New("mlflow: the server could not be reached in time"), w.lost)
	}
}

// send runs until the queue is closed.
func (w *Writer) send(ctx context.Context) {
	defer close(w.done)
	wait, timer := w.Retry, time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case more, ok := <-w.queue:
			if !ok {
				w.finish(ctx)
				return
			}
			w.keep(more)
			if w.away {
				continue // the timer tries again
			}
		case <-timer.C:
		}
		err := w.flush(ctx)
		switch {
		case err == nil:
			w.away, wait = false, w.Retry
		case !temporary(err):
			w.giveUp(err)
			return
		default:
			w.missed(err)
			timer.Reset(wait)
			wait = min(2*wait, maxRetry)
		}
	}
}

// keep adds to the pending metrics; above the limit, the oldest are dropped.
func (w *Writer) keep(more []metric) {
	w.pending = append(w.pending, more...)
	if over := len(w.pending) - maxPending; over > 0 {
		w.pending, w.lost = slices.Clone(w.pending[over:]), w.lost+over
	}
}

func (w *Writer) missed(err error) {
	if w.Away != nil {
		w.Away(err)
		w.Away = nil
	}
	w.away = true
}

// giveUp says why the server takes nothing, and counts what is added from then on.
func (w *Writer) giveUp(err error) {
	lost := w.lost + len(w.pending)
	for more := range w.queue {
		lost += len(more)
	}
	w.lost = 0
	if w.Failed != nil {
		w.Failed(err, lost)
		w.Failed = nil
	}
}

// flush sends all that is pending, after it has found or made the run.
func (w *Writer) flush(ctx context.Context) (err error) {
	if w.experiment == "" {
		if w.experiment, err = w.server.experiment(ctx, w.Experiment); err != nil {
			return err
		}
	}
	if w.id == "" && w.Resumed {
		if w.id, err = w.server.resumed(ctx, w.experiment, w.Job); err != nil {
			w.id = ""
			return err
		}
		if w.id != "" {
			w.params = nil // it has them
		}
	}
	if w.id == "" {
		tags := append(pairs(w.Tags), pair{jobTag, w.Job})
		if w.id, err = w.server.create(ctx, w.experiment, w.Run, tags, w.began); err != nil {
			return err
		}
	}
	for len(w.params) > 0 {
		n := min(len(w.params), maxParams)
		if err := w.server.log(ctx, w.id, nil, w.params[:n]); err != nil {
			return err
		}
		w.params = w.params[n:]
	}
	for len(w.pending) > 0 {
		n := min(len(w.pending), maxBatch)
		if err := w.server.log(ctx, w.id, w.pending[:n], nil); err != nil {
			return err
		}
		w.pending = w.pending[n:]
	}
	return nil
}

// finish sends what is left and ends the run of the server, as often as it takes and there is time for.
func (w *Writer) finish(ctx context.Context) {
	status, at := <-w.status, time.Now()
	last := func() error {
		err := w.flush(ctx)
		if err == nil {
			err = w.server.end(ctx, w.id, status, at)
		}
		return err
	}
	err := last()
	for err != nil && temporary(err) && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(w.Retry):
			if again := last(); again == nil || ctx.Err() == nil { // the reason, not that time is over
				err = again
			}
		}
	}
	if err != nil && w.Failed != nil {
		w.Failed(err, w.lost+w.dropped+len(w.pending))
		w.Failed = nil
	}
}
