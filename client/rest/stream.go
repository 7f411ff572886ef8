package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
)

// FromBeginning, as the place to follow a run from, gives everything that there is first.
const FromBeginning = "0.0.0."

// ErrEnough is returned by a reader to end a stream.
var ErrEnough = errors.New("rest: the reader has enough")

// silence is how long a stream may be silent, without so much as a heartbeat, before it counts as dead.
const silence = time.Minute

// maxEvent bounds a line of a stream.
const maxEvent = 64 << 20

// RunEvent is one event of the stream of a run.
type RunEvent struct {
	ID    string // where to resume after
	Reset bool   // records were taken back, or the reader's position is unknown: it reads them again
	api.Update
}

// Follow passes the events of a run, first its current state, until the reader or the context ends it. after is the ID
// of the last RunEvent that the reader has, or "". A lost connection is opened again; an error of the server ends it.
func (c *Client) Follow(ctx context.Context, id, after string, each func(RunEvent) error) error {
	for {
		err := c.stream(ctx, of(id, "events"), after, func(event, name string, data []byte) error {
			n := RunEvent{ID: event, Reset: name == "reset"}
			if err := json.Unmarshal(data, &n.Update); err != nil {
				return nil // of a kind that it does not know
			}
			if event != "" {
				after = event
			}
			return each(n)
		})
		var e *Error
		switch {
		case errors.Is(err, ErrEnough):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &e) && !e.Temporary:
			return err
		case err != nil && !lost(err):
			return err // the reader's own
		}
		if err := pause(ctx, c.Every); err != nil {
			return err
		}
	}
}

// lostError is a stream that broke.
type lostError struct{ error }

func lost(err error) bool {
	var l lostError
	var e *Error
	return errors.As(err, &l) || errors.As(err, &e)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// stream reads server-sent events (WHATWG HTML, section 9.2) until their end.
func (c *Client) stream(ctx context.Context, path, after string, each func(id, name string, data []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	header := http.Header{"Accept": {"text/event-stream"}}
	if after != "" {
		header.Set("Last-Event-Id", after)
	}
	answer, err := c.do(ctx, http.MethodGet, path, nil, header)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	dead := time.AfterFunc(silence, cancel)
	defer dead.Stop()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxEvent)
	id, name, data := "", "", ""
	for lines.Scan() {
		dead.Reset(silence)
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "" && data != "":
			if err := each(id, name, []byte(data)); err != nil {
				return err
			}
			name, data = "", ""
		case field == "id":
			id = value
		case field == "event":
			name = value
		case field == "data":
			data += value
		}
	}
	if err := lines.Err(); err != nil {
		return lostError{err}
	}
	return lostError{io.ErrUnexpectedEOF}
}

// Over reports whether a run has ended.
func Over(j api.Job) bool { return j.State != "running" && j.State != "queued" }

// FollowLog gives the lines of a run's log from an offset on, as Log does, and those that are added, until the run is
// over.
func (c *Client) FollowLog(ctx context.Context, id string, from int64, each func(lines []string) error) error {
	for {
		j, err := c.Job(ctx, id)
		if err != nil {
			return err
		}
		l, err := c.Log(ctx, id, from)
		if err != nil {
			return err
		}
		if len(l.Lines) > 0 {
			if err := each(l.Lines); err != nil {
				return err
			}
		}
		more := l.To < l.Size && len(l.Lines) > 0
		if from = l.To; more {
			continue
		}
		if Over(j) {
			return nil
		}
		if err := pause(ctx, c.Every); err != nil {
			return err
		}
	}
}
