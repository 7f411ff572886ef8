package works

import (
	"fmt"

	"github.com/starling-network/starling/protocol/dispute"
)

// Lazy is a work that is opened at the first question, so that a move that is refused earlier does not open it.
type Lazy struct {
	open    func() (dispute.Referee, error)
	work    dispute.Referee
	Err     error // of opening it
	Refused error // why the work refused a payload
}

// NewLazy returns a work that open opens at the first question.
func NewLazy(open func() (dispute.Referee, error)) *Lazy { return &Lazy{open: open} }

var _ dispute.Referee = (*Lazy)(nil)

func (l *Lazy) ready() bool {
	if l.work == nil && l.Err == nil {
		if l.work, l.Err = l.open(); l.Err != nil {
			l.Err = fmt.Errorf("training: work that was admitted: %w", l.Err)
		}
	}
	return l.Err == nil
}

// Parts implements dispute.Referee.
func (l *Lazy) Parts(c dispute.Claim) uint64 {
	if !l.ready() {
		return 0
	}
	return l.work.Parts(c)
}

// Judge implements dispute.Referee.
func (l *Lazy) Judge(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	if !l.ready() {
		return dispute.Ruling{}, l.Err
	}
	r, err := l.work.Judge(c, payload)
	l.Refused = err
	return r, err
}
