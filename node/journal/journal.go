// Package journal records the events of a role and the actions that it asked for, event by event, and replays them.
// Roles are step functions without clock, randomness or I/O: the same events give the same actions, and a difference
// is a bug or another program.
//
// A journal serves the analysis of a process. No decision depends on it, and work continues without it.
package journal

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/role"
)

// Format of the files.
const Format = 1

// Header is the first line of a file.
type Header struct {
	Format  int       `json:"format"`
	Time    time.Time `json:"time"`
	Role    string    `json:"role"` // worker, verifier or consumer
	ID      string    `json:"id"`   // account of the party
	Job     string    `json:"job"`
	Version string    `json:"version"` // of the binary
	Plants  bool      `json:"plants"`  // the worker plants faults, by a secret that is not written down
	// the verifier looks at units that were not drawn for it, in an order that follows from its key
	Watches   bool   `json:"watches"`
	Next      uint32 `json:"next,omitempty"` // first round that a consumer has not collected
	Continues bool   `json:"continues"`
}

// record is every other line: one event, and what the role asked for in answer to it.
type record struct {
	Time   time.Time `json:"time"`
	Height int64     `json:"height"` // of the latest block
	Event  string    `json:"event"`  // name of its type
	Phase  string    `json:"phase,omitempty"`
	Round  uint32    `json:"round,omitempty"`
	// Block: state and disputes in canonical bytes, deflated with those of the block before as dictionary; none: nothing
	// changed
	Block   []byte          `json:"block,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"` // of other events, or of the action that ended
	Action  string          `json:"action,omitempty"`
	Error   string          `json:"error,omitempty"`
	Actions []asked         `json:"actions,omitempty"`
}

// asked is an action in short.
type asked struct {
	Key    string `json:"key"`
	Digest string `json:"digest"` // of all that is in it
}

func ask(actions []role.Action) []asked {
	var list []asked
	for _, a := range actions {
		list = append(list, asked{a.Key(), canon.Hash("starling/journal/1", a).Short()})
	}
	return list
}

// Options say where a journal is kept and how much of it.
type Options struct {
	Dir  string // folder of journals, made if need be
	File int64  // bytes of one file, about; 0: 8 MiB
	All  int64  // bytes of all files in the folder, about; the oldest go; 0: 64 MiB
}

// Journal is being written. It is not safe for concurrent use.
type Journal struct {
	Options
	header Header
	file   *os.File
	path   string
	size   int64
	height int64
	last   []byte // canonical bytes of the latest block
	sealed bool   // the role was told that the data is encrypted, which holds in every file
}

const suffix = ".jsonl"

// Create begins a journal at a time.
func Create(o Options, h Header) (*Journal, error) {
	if o.File == 0 {
		o.File = 8 << 20
	}
	if o.All == 0 {
		o.All = 64 << 20
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	j := &Journal{Options: o, header: h}
	return j, j.begin(h.Time, false)
}

// Path of the file that is written at the moment.
func (j *Journal) Path() string { return j.path }

// begin opens a file of its own for what follows, and drops the oldest files if there is too much of them.
func (j *Journal) begin(at time.Time, continues bool) error {
	if j.file != nil {
		if err := j.file.Close(); err != nil {
			return err
		}
	}
	if err := j.prune(); err != nil {
		return err
	}
	j.path = filepath.Join(j.Dir, at.UTC().Format("20060102T150405.000000000")+"-"+j.header.Job+suffix)
	var err error
	if j.file, err = os.OpenFile(j.path, os.O_APPEND|os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	j.size, j.last = 0, nil
	j.header.Format, j.header.Time, j.header.Continues = Format, at, continues
	return j.write(j.header)
}

// prune deletes the oldest files, until there is room for one more.
func (j *Journal) prune() error {
	entries, err := os.ReadDir(j.Dir) // in order of name, which begins with the time
	if err != nil {
		return err
	}
	total := j.File
	for _, e := range slices.Backward(entries) {
		info, err := e.Info()
		if err != nil || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		if total += info.Size(); total > j.All {
			if err := os.Remove(filepath.Join(j.Dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *Journal) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	n, err := j.file.Write(append(line, '\n'))
	j.size += int64(n)
	return err
}

// Note writes down an event that a role was told at a time, and what it asked for.
func (j *Journal) Note(at time.Time, e role.Event, actions []role.Action) error {
	b, block := e.(role.Block)
	if block {
		if j.height = b.Height; j.size > j.File { // a file begins before a block
			if err := j.begin(at, true); err != nil {
				return err
			}
			if j.sealed {
				if err := j.Note(at, role.Encrypted{}, nil); err != nil {
					return err
				}
			}
		}
	}
	if _, ok := e.(role.Encrypted); ok {
		j.sealed = true
	}
	r := record{Time: at, Height: j.height, Event: name(e), Actions: ask(actions)}
	var err error
	switch e := e.(type) {
	case role.Block:
		r.Phase, r.Round = e.Run.Phase.String(), e.Run.Round+1
		r.Block, err = j.change(e)
	case role.Finished:
		r.Action = name(e.Action)
		r.Value, err = json.Marshal(e.Action)
	case role.Failed:
		r.Action, r.Error = name(e.Action), e.Err.Error()
		r.Value, err = json.Marshal(e.Action)
	default:
		r.Value, err = json.Marshal(e)
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return j.write(r)
}

// change is a block in terms of the one before; nil if they are equal.
func (j *Journal) change(b role.Block) ([]byte, error) {
	b.Height = 0 // the line has a field for it
	whole, err := canon.Marshal(b)
	if err != nil || bytes.Equal(whole, j.last) {
		return nil, err
	}
	var out bytes.Buffer
	w, err := flate.NewWriterDict(&out, flate.DefaultCompression, j.last)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(whole)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	j.last = whole
	return out.Bytes(), nil
}

// maxBlock bounds what the bytes of a block may unpack to.
const maxBlock = 64 << 20

// unchange is the inverse of change, and of the bytes of the block before.
func unchange(change, last []byte) ([]byte, error) {
	if len(change) == 0 {
		return last, nil
	}
	whole, err := io.ReadAll(io.LimitReader(flate.NewReaderDict(bytes.NewReader(change), last), maxBlock+1))
	if err == nil && len(whole) > maxBlock {
		err = fmt.Errorf("a block of more than %d bytes", maxBlock)
	}
	return whole, err
}

// Close ends the journal.
func (j *Journal) Close() error { return j.file.Close() }
