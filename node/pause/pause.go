package pause

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// State says whether a worker is paused.
type State struct {
	Paused bool      `json:"paused"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"` // zero: that is not known
	Why    string    `json:"why,omitempty"`
}

// String says whether the worker is paused, until when and why.
func (s State) String() string {
	switch {
	case !s.Paused:
		return "not paused"
	case s.Until.IsZero():
		return fmt.Sprintf("paused since %s: %s", s.Since.Local().Format(time.DateTime), s.Why)
	}
	return fmt.Sprintf("paused since %s, until %s: %s", s.Since.Local().Format(time.DateTime),
		s.Until.Local().Format(time.DateTime), s.Why)
}

// fileOwner, in the folder of a worker, says that its owner paused it: a restart does not end that.
const fileOwner = "pause.json"

// MaxFor is the longest pause of an owner that has an end.
const MaxFor = 366 * 24 * time.Hour

// owner is a pause by the owner.
type owner struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"` // zero: until the owner resumes the worker
}

// Pauser knows whether a worker is paused. Its methods are called concurrently.
type Pauser struct {
	path string
	now  func() time.Time

	mu         sync.Mutex
	watch      watch
	reasons    []reason // of the conditions
	owner      *owner   // nil: the owner did not pause it
	state      State
	changed    chan struct{} // closed with the next change
	unreadable string        // why the machine cannot be read
}

// Open returns the pauser of a worker with a folder, in which the pause of its owner is kept.
func Open(dir string, c Conditions, now func() time.Time) (*Pauser, error) {
	p := &Pauser{path: filepath.Join(dir, fileOwner), now: now, watch: watch{Conditions: c}, changed: make(chan struct{})}
	text, err := os.ReadFile(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		p.owner = &owner{}
		if err := json.Unmarshal(text, p.owner); err != nil {
			return nil, fmt.Errorf("pause: %s is damaged (%w): delete it, and pause the worker again", p.path, err)
		}
	}
	p.reasons = p.watch.step(now(), nil)
	p.settle()
	return p, nil
}

// State returns whether the worker is paused, and a channel that is closed when that changes. A nil Pauser never
// pauses.
func (p *Pauser) State() (State, <-chan struct{}) {
	if p == nil {
		return State{}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.changed
}

// Paused reports whether the worker is paused.
func (p *Pauser) Paused() bool {
	s, _ := p.State()
	return s.Paused
}

// Pause pauses the worker for its owner; 0: until Resume. A second call counts instead of the first.
func (p *Pauser) Pause(d time.Duration) (State, error) {
	if d < 0 || d > MaxFor {
		return State{}, fmt.Errorf("pause: for %v: a pause is at most %v long", d, MaxFor)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o := owner{Since: p.now().Round(0)} // by the clock on the wall: the machine may sleep
	if d > 0 {
		o.Until = o.Since.Add(d)
	}
	text, err := json.Marshal(o)
	if err == nil {
		err = replace(p.path, text)
	}
	if err != nil {
		return State{}, err
	}
	p.owner = &o
	p.settle()
	return p.state, nil
}

// Resume ends the pause of the owner. Conditions may pause the worker all the same.
func (p *Pauser) Resume() (State, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.forget()
	p.settle()
	return p.state, err
}

// forget ends the pause of the owner.
func (p *Pauser) forget() error {
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.owner = nil
	return nil
}

// Look reads the machine, whose conditions change the state. It is called once a second or so. An error is returned
// once, and the conditions stay as they are; nil: there is no machine to read.
func (p *Pauser) Look(m Machine) error {
	now := p.now()
	var r *Reading
	var err error
	if m != nil {
		var got Reading
		if got, err = m.Read(p.watch.Conditions, now); err == nil {
			r = &got
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reasons = p.watch.step(now, r)
	p.settle()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == p.unreadable {
		return nil
	}
	p.unreadable = text
	return err
}

// settle computes the state, and tells of its change.
func (p *Pauser) settle() {
	now := p.now()
	if o := p.owner; o != nil && !o.Until.IsZero() && !now.Before(o.Until) {
		if p.forget() != nil {
			p.owner = nil // the file says that it is over, too
		}
	}
	reasons := p.reasons
	if p.owner != nil {
		reasons = append([]reason{{"its owner paused it", p.owner.Until}}, reasons...)
	}
	next := State{Paused: len(reasons) > 0, Since: p.state.Since}
	var why []string
	known := true
	for _, r := range reasons {
		why = append(why, r.why)
		known = known && !r.until.IsZero()
		if r.until.After(next.Until) {
			next.Until = r.until
		}
	}
	if next.Why = strings.Join(why, "; "); !known {
		next.Until = time.Time{}
	}
	switch {
	case !next.Paused:
		next = State{}
	case !p.state.Paused && p.owner != nil:
		next.Since = p.owner.Since
	case !p.state.Paused:
		next.Since = now
	}
	if next == p.state {
		return
	}
	p.state = next
	close(p.changed)
	p.changed = make(chan struct{})
}

// replace writes a file as a whole, which only its owner may read.
func replace(path string, text []byte) error {
	part := path + ".part"
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}
