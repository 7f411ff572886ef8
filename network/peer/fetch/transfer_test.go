package fetch

import (
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/blob"
)

// take is transfer.take of a worker that does not wait.
func take(t *testing.T, x *transfer, id peer.ID, want span, ok bool) {
	t.Helper()
	if got, gotOK := x.take(id, maxSpan, false); got != want && gotOK || gotOK != ok {
		t.Fatalf("take: %v, %v; want %v, %v", got, gotOK, want, ok)
	}
}

func TestTransfer(t *testing.T) {
	x := newTransfer([]int{1, 2, 3, 5, 6}, 2, time.Hour)
	kept := map[int]bool{}
	x.keep = func(i int, data []byte) error {
		if len(data) == 0 {
			return blob.ErrCorrupt
		}
		kept[i] = true
		return nil
	}
	take(t, x, "a", span{1, 3}, true)
	take(t, x, "b", span{3, 4}, true) // 4 is not wanted
	take(t, x, "a", span{5, 7}, true)
	take(t, x, "b", span{}, false)

	if err := x.deliver(1, []byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := x.deliver(2, nil); !errors.Is(err, blob.ErrCorrupt) {
		t.Fatal(err)
	}
	x.giveBack(span{1, 3})
	take(t, x, "b", span{2, 3}, true) // 1 is done
	for _, i := range []int{2, 3, 5, 6} {
		if x.complete() {
			t.Fatalf("complete without %d", i)
		}
		if err := x.deliver(i, []byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	<-x.ended
	if !x.complete() || len(kept) != 5 {
		t.Errorf("kept %v", kept)
	}
	if _, ok := x.take("a", maxSpan, true); ok {
		t.Error("a complete transfer gave a span")
	}
}

// TestLate checks that what a peer owes for too long is given to one other peer, and not to itself.
func TestLate(t *testing.T) {
	x := newTransfer([]int{0, 1}, 2, 0)
	take(t, x, "slow", span{0, 2}, true)
	if s, ok := x.late("slow"); ok {
		t.Errorf("a peer was given %v, which it owes", s)
	}
	if s, ok := x.take("other", maxSpan, true); !ok || s != (span{0, 1}) {
		t.Errorf("late: %v, %v", s, ok)
	}
	if s, ok := x.take("third", maxSpan, true); !ok || s != (span{1, 2}) {
		t.Errorf("late: %v, %v", s, ok)
	}
	if s, ok := x.late("fourth"); ok {
		t.Errorf("a third copy was asked for: %v", s)
	}
	x.giveBack(span{0, 1})
	if s, ok := x.late("fourth"); !ok || s != (span{0, 1}) {
		t.Errorf("late: %v, %v", s, ok)
	}
}

func TestTransferStops(t *testing.T) {
	x := newTransfer([]int{0}, 1, time.Hour)
	take(t, x, "a", span{0, 1}, true)
	waiting := make(chan bool)
	go func() {
		_, ok := x.take("b", maxSpan, true)
		waiting <- ok
	}()
	full := errors.New("disk is full")
	x.stop(full)
	x.stop(nil)
	if <-waiting || x.complete() || x.err != full {
		t.Errorf("after stop: complete %v, error %v", x.complete(), x.err)
	}
	if empty := newTransfer(nil, 1, 0); !empty.complete() {
		t.Error("a transfer of nothing is not complete")
	}
}
