// Package journal keeps on disk, for each model that clients train, its client and the requests since its last step,
// with their results, so that a server that is started again continues where the one before it ended. It knows no
// weights, and does no work.
package journal

import (
	"bytes"
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

// maxBytes bounds the requests of a model that are kept.
const maxBytes = 256 << 20

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

// line is one of a file: the first has a head, and each other one a request, an answer, or a request that was not
// taken.
type line struct {
	Head   *Head  `json:"head,omitempty"`
	Ask    *Entry `json:"ask,omitempty"`
	Answer *Entry `json:"answer,omitempty"`
	Drop   string `json:"drop,omitempty"`
}

// Log is the file of a model. It is safe for concurrent use.
type Log struct {
	Head Head
	path string

	mu   sync.Mutex
	f    *os.File // nil: it is removed
	size int
	all  []*Entry
}

const suffix = ".log"

// New begins the log of a model in a folder.
func New(dir string, h Head) (*Log, error) {
	l := &Log{Head: h, path: filepath.Join(dir, h.Model+suffix)}
	return l, l.rewrite()
}

// Open reads the logs of a folder. A line that was not written to its end is left out, as its request was not
// answered.
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
				err = l.rewrite()
			}
		}
		if err != nil {
			return nil, fmt.Errorf("journal: %s: %w", l.path, err)
		}
		all = append(all, l)
	}
	return all, err
}

func (l *Log) read(text []byte) error {
	for n, part := range bytes.SplitAfter(text, []byte("\n")) {
		var x line
		switch err := json.Unmarshal(part, &x); {
		case err != nil && n > 0 && !bytes.HasSuffix(part, []byte("\n")):
			return nil
		case err != nil:
			return err
		case (n == 0) != (x.Head != nil):
			return errors.New("the first line alone says of which model it is")
		case x.Head != nil:
			l.Head = *x.Head
		case x.Ask != nil:
			l.all = append(l.all, x.Ask)
		case x.Answer != nil:
			l.answer(x.Answer)
		default:
			l.drop(x.Drop)
		}
	}
	return nil
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

// Ask notes a request before it is taken. Requests before the last step that is answered are forgotten.
func (l *Log) Ask(e Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+len(e.Body) > maxBytes {
		return &failure.Error{Status: http.StatusTooManyRequests, Code: "QUEUE_FULL",
			Detail: "too much was sent since the last step of the model", Fix: "send optim_step, and wait for its result",
			Retry: time.Second}
	}
	l.all = append(l.all, &e)
	if l.forget() {
		return l.rewrite()
	}
	return l.write(line{Ask: &e})
}

// Answer notes the result of a request. Ends says that requests before it have no effect on later ones.
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
	err := l.close()
	return errors.Join(err, os.Remove(l.path))
}

// Close ends the log, and leaves its file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.close()
}

func (l *Log) close() error {
	if l.f == nil {
		return nil
	}
	err := l.f.Close()
	l.f = nil
	return err
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
		l.all[i].Body = nil
	}
	if before >= 0 {
		l.all = slices.Delete(l.all, 0, before+1)
	}
	return before >= 0
}

// rewrite writes the file with the requests that are kept.
func (l *Log) rewrite() error {
	var b bytes.Buffer
	lines := []line{{Head: &l.Head}}
	for _, e := range l.all {
		lines = append(lines, line{Ask: e})
	}
	for _, x := range lines {
		text, err := json.Marshal(x)
		if err != nil {
			return err
		}
		b.Write(append(text, '\n'))
	}
	if err := errors.Join(l.close(), os.MkdirAll(filepath.Dir(l.path), 0o755)); err != nil {
		return err
	}
	part := l.path + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Sync(), os.Rename(part, l.path)); err != nil {
		return errors.Join(err, f.Close())
	}
	l.f, l.size = f, b.Len()
	return nil
}

func (l *Log) write(x line) error {
	if l.f == nil {
		return nil
	}
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	l.size += len(text) + 1
	_, err = l.f.Write(append(text, '\n'))
	return errors.Join(err, l.f.Sync())
}
