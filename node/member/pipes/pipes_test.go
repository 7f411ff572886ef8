package pipes

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/starling-network/starling/role/pipeline"
	"github.com/starling-network/starling/role/staged"
)

// A neighbour that ends before it has signed all frames has failed, but for one that has all, which may commit.
func TestEndOfANeighbour(t *testing.T) {
	done := false
	w := &wire{Pipes: &Pipes{}, in: map[int]*queue{1: newQueue(1)}, waiting: time.Minute, Attempt: staged.Attempt{
		Done: func(int) bool { return done },
		Word: func(int) (m pipeline.Message, ok bool) {
			m.Voucher.Head.Frames = 7
			return m, done
		}}}
	w.ctx, w.cancel = context.WithCancel(t.Context())
	defer w.cancel()
	w.in[1].fail <- errEnded
	if _, err := w.Receive(1); !errors.Is(err, errEnded) {
		t.Errorf("a neighbour that has not sent all: %v", err)
	}
	done = true
	if m, err := w.Receive(1); err != nil || m.Voucher.Head.Frames != 7 {
		t.Errorf("one that has committed: %+v, %v", m, err)
	}
}

// A stage says for whom it waits before its time ends, however late it began to wait.
func TestPatience(t *testing.T) {
	w := &wire{waiting: time.Hour}
	if got := w.patient(); got != time.Hour {
		t.Errorf("%v", got)
	}
	if w.until = time.Now().Add(time.Minute); w.patient() > time.Minute {
		t.Errorf("%v", w.patient())
	}
	if w.until = time.Now().Add(-time.Minute); w.patient() != again {
		t.Errorf("%v", w.patient())
	}
}
