// Package journal keeps on disk, for each model that clients train, its client and the requests since its last step,
// with their results, so that a server that is started again continues where the one before it ended. It knows no
// weights, and does no work.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/failure"
)

// Limits of the file of a model.
const (
	maxBytes = 256 << 20 // for requests
	reserve  = 16 << 20  // of these, for steps alone: after a step there is room again
)

// Head says of which client a model is, and how it was created.
type Head struct {
	Model   string          `json:"model"`
	Session string          `json:"session"`
	Token   string          `json:"token,omitempty"` // digest
	Request string          `json:"request"`         // that created it
	Create  json.RawMessage `json:"create"`
}

// Entry is a request and, once it is answered, its result.
type Entry struct {
	ID     string          `json:"id"`
	Name   string          `json:"name"` // of the operation
	Number *int64          `json:"number,omitempty"`
	By     access.Caller   `json:"by"`
	Digest string          `json:"digest"` // of the body
	Body   json.RawMessage `json:"body,omitempty"`

	Answered bool            `json:"answered,omitempty"`
	Ends     bool            `json:"ends,omitempty"` // requests before it have no effect on later ones
	Result   json.RawMessage `json:"result,omitempty"`
	Err      *failure.Error  `json:"error,omitempty"`
}

// Log is the file of a model. It is safe for concurrent use.
type Log struct {
	Head Head
	path string

	mu     sync.Mutex
	f      file // nil: the file is not as it should be, and is written again before something is added
	closed bool
	size   int // bytes of the file
	freed  int // bytes of it, at least, that it need not have any more
	all    []*Entry
}

const suffix = ".log"

// New begins the log of a model in a folder.
func New(dir string, h Head) (*Log, error) {
	l := &Log{Head: h, path: filepath.Join(dir, h.Model+suffix)}
	return l, storing(l.rewrite())
}

// Open reads the logs of a folder. A line that was not written to its end is left out, as the process ended before it
// took the request or told the result. Other damage is an error LOG_DAMAGED that names the file.
func Open(dir string) (all []*Log, err error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), suffix) {
			continue
		}
		l := &Log{path: filepath.Join(dir, f.Name())}
		text, err := os.ReadFile(l.path)
		if err == nil {
			if err = l.read(text); err == nil {
				err = storing(l.rewrite())
			}
		}
		if err != nil {
			return nil, fmt.Errorf("journal: %s: %w", l.path, err)
		}
		all = append(all, l)
	}
	return all, err
}

// Entries are the requests that are kept, in their order, and how many of them have no effect on later ones.
func (l *Log) Entries() (all []Entry, ended int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range l.all {
		if all = append(all, *e); e.Ends {
			ended = i + 1
		}
	}
	return all, ended
}

// Ask notes a request before it is taken. Requests before the last step that is answered are forgotten. Steps says that
// it is a step. A request is refused if the file has no room for it, and then is not noted.
func (l *Log) Ask(e Entry, steps bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := maxBytes
	if !steps {
		most -= reserve
	}
	if l.forget() || l.size+len(e.Body) > most && l.freed > 0 {
		if err := l.rewrite(); err != nil {
			return storing(err)
		}
	}
	if l.size+len(e.Body) > most {
		return &failure.Error{Status: http.StatusTooManyRequests, Code: "QUEUE_FULL",
			Detail: "too much was sent since the last step of the model", Fix: "send optim_step, and wait for its result",
			Retry: time.Second}
	}
	l.all = append(l.all, &e)
	err := l.write(line{Ask: &e})
	if err != nil {
		l.drop(e.ID)
	}
	return storing(err)
}

// Answer notes the result of a request. Ends says that requests before it have no effect on later ones. If it cannot be
// written, the next request is not noted before it is.
func (l *Log) Answer(id string, result json.RawMessage, wrong *failure.Error, ends bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &Entry{ID: id, Result: result, Err: wrong, Ends: ends}
	l.answer(a)
	return l.write(line{Answer: a})
}

// Drop notes that a request was not taken.
func (l *Log) Drop(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(id)
	return l.write(line{Drop: id})
}

// Remove removes the file.
func (l *Log) Remove() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.close(), os.Remove(l.path))
}

// Close ends the log, and leaves its file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.close()
}

func (l *Log) close() error {
	l.closed = true
	return l.leave()
}

func (l *Log) answer(a *Entry) {
	for _, e := range l.all {
		if e.ID == a.ID {
			e.Answered, e.Result, e.Err, e.Ends = true, a.Result, a.Err, a.Ends
		}
	}
}

func (l *Log) drop(id string) {
	l.all = slices.DeleteFunc(l.all, func(e *Entry) bool { return e.ID == id })
}

// forget drops the requests before the latest two steps up to which all requests are answered, and the bodies of the
// requests of the last one; the results of these stay, so that its client finds them. It reports whether it dropped
// something.
func (l *Log) forget() bool {
	last, before := -1, -1
	for i, e := range l.all {
		if !e.Answered {
			break
		}
		if e.Ends {
			last, before = i, last
		}
	}
	for i := range last + 1 {
		l.freed += len(l.all[i].Body)
		l.all[i].Body = nil
	}
	if before >= 0 {
		l.all = slices.Delete(l.all, 0, before+1)
	}
	return before >= 0
}
