package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// serverSent is the connection of a reader of server-sent events (WHATWG HTML, section 9.2).
type serverSent struct {
	w  http.ResponseWriter
	rc *http.ResponseController
	s  *Streams
}

// Open begins an answer of server-sent events.
func (s *Streams) Open(w http.ResponseWriter) (Sink, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	to := &serverSent{w: w, rc: http.NewResponseController(w), s: s}
	_ = to.rc.SetReadDeadline(time.Time{}) // the request is read; the connection lives on
	return to, to.write([]byte("retry: 1000\n\n"))
}

// write sends bytes now, or fails when the reader does not take them in time.
func (c *serverSent) write(b []byte) error {
	_ = c.rc.SetWriteDeadline(time.Now().Add(c.s.Timeout)) // a recorder has none
	_, err := c.w.Write(b)
	if err == nil {
		err = c.rc.Flush()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.s.counts.late.Add(1)
	}
	return err
}

// Send implements Sink. JSON has no newline in it.
func (c *serverSent) Send(id, event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", event, text)
	c.s.Sent()
	return c.write(b.Bytes())
}

// Beat implements Sink.
func (c *serverSent) Beat() error { return c.write([]byte(": alive\n\n")) }
