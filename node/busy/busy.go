// Package busy measures for how much of its time a process computes, by class of work. It counts the time in which at
// least one computation of a class is under way, and, of all classes together, at least one. It knows nothing of
// processors: a computation that waits for a core counts.
package busy

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/protocol/run/crew"
)

// Class is a class of work that a machine is paid for.
type Class string

// The classes.
const (
	Training     Class = "training"
	Verification Class = "verification"
	Generation   Class = "generation" // of answers to learn from
	Evaluation   Class = "evaluation" // of the models of contests
	Hosting      Class = "hosting"    // answers of a hosted model
)

// Share is the busy time of a class.
type Share struct {
	Class   Class   `json:"class"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"` // of the time since the process began, in which another class may work as well
}

// Meter measures. Its methods are called concurrently.
type Meter struct {
	now   func() time.Time
	began time.Time

	mu  sync.Mutex
	all span
	of  map[Class]*span
}

// span is the time in which at least one computation is under way.
type span struct {
	running int
	since   time.Time // when the first of them began
	sum     time.Duration
}

func (s *span) begin(now time.Time) {
	if s.running++; s.running == 1 {
		s.since = now
	}
}

func (s *span) end(now time.Time) {
	if s.running--; s.running == 0 {
		s.sum += now.Sub(s.since)
	}
}

func (s *span) until(now time.Time) time.Duration {
	if s.running > 0 {
		return s.sum + now.Sub(s.since)
	}
	return s.sum
}

// New returns a meter of a process that begins now.
func New(now func() time.Time) *Meter {
	return &Meter{now: now, began: now(), of: map[Class]*span{}}
}

// Begin takes note that a computation begins; the function it returns, which is called once, that it ended.
func (m *Meter) Begin(c Class) (ended func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of[c]
	if s == nil {
		s = &span{}
		m.of[c] = s
	}
	now := m.now()
	s.begin(now)
	m.all.begin(now)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		now := m.now()
		s.end(now)
		m.all.end(now)
	}
}

// Shares are the busy times of the classes that computed, in the order of their names, and of all together.
func (m *Meter) Shares() (classes []Share, all Share) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	lasts := now.Sub(m.began).Seconds()
	share := func(c Class, s *span) Share {
		r := Share{Class: c, Seconds: s.until(now).Seconds()}
		if lasts > 0 {
			r.Share = r.Seconds / lasts
		}
		return r
	}
	classes = []Share{}
	for c, s := range m.of {
		classes = append(classes, share(c, s))
	}
	slices.SortFunc(classes, func(a, b Share) int { return strings.Compare(string(a.Class), string(b.Class)) })
	return classes, share("", &m.all)
}

// Of is the class of the work of a seat, of an account that offers a class of work.
func Of(seat, offered crew.Role) Class {
	switch {
	case seat == crew.Verifier:
		return Verification
	case offered == crew.Generator:
		return Generation
	}
	return Training
}
