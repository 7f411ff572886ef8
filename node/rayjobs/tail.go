package rayjobs

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

const (
	tailEvery   = 300 * time.Millisecond
	tailTimeout = 20 * time.Second // for a reader that does not read
	mostAtOnce  = 64 << 10
)

// tail sends the log of a job as it grows, as texts over a WebSocket, and closes it when the job has ended.
func (h *Host) tail(w http.ResponseWriter, r *http.Request) {
	e, err := h.find(r.PathValue("id"))
	if err != nil {
		reply(w, nil, err)
		return
	}
	f, err := os.Open(filepath.Join(h.dir, jobsDir, e.ID, logName))
	if err != nil {
		reply(w, nil, err)
		return
	}
	defer f.Close()
	up := websocket.Upgrader{HandshakeTimeout: tailTimeout} // it has answered by itself where it fails
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	gone := make(chan struct{})
	go func() { // reads closing messages, and learns that the reader is gone
		defer close(gone)
		for {
			if _, _, err := conn.NextReader(); err != nil {
				return
			}
		}
	}()
	if err := sendLog(conn, f, e.ended, gone); err == nil {
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""),
			time.Now().Add(tailTimeout)) // the reader may be gone
	}
}

// sendLog sends a log until its job has ended and all of it is sent, or the reader is gone.
func sendLog(conn *websocket.Conn, log io.Reader, ended, gone <-chan struct{}) error {
	b, cut, last := make([]byte, mostAtOnce), 0, false
	for {
		n, err := log.Read(b[cut:])
		switch {
		case n > 0:
			text := whole(b[:cut+n])
			if err := conn.SetWriteDeadline(time.Now().Add(tailTimeout)); err != nil {
				return err
			}
			if err := conn.WriteMessage(websocket.TextMessage, bytes.ToValidUTF8(text, []byte("\uFFFD"))); err != nil {
				return err
			}
			cut = copy(b, b[len(text):cut+n])
			continue
		case err != nil && err != io.EOF:
			return err
		case last:
			return nil
		}
		select {
		case <-gone:
			return io.ErrClosedPipe
		case <-ended:
			last = true // read what was written before it ended
		case <-time.After(tailEvery):
		}
	}
}

// whole is a text without the beginning of a character at its end, the rest of which is yet to come.
func whole(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if last := b[len(b)-i:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				break
			}
			return b[:len(b)-i]
		}
	}
	return b
}
