package work

import (
	"context"
	"strconv"
	"strings"
	"testing"
)

// TestQueueLimits: too much work is refused, and old results are dropped.
func TestQueueLimits(t *testing.T) {
	q := New(nil)
	var last *Future
	for i := range maxWaiting + 1 {
		f, err := q.Add(strconv.Itoa(i), 1, func() (any, error) { return strings.Repeat("x", maxKeptBytes/2+1), nil }, nil)
		if (err != nil) != (i == maxWaiting) {
			t.Fatalf("piece %d: %v", i, err)
		}
		if f != nil {
			last = f
		}
	}
	q.Always("own", nil, nil)
	if got := q.waiting[len(q.waiting)-1]; got.ID != "own" {
		t.Errorf("after work of the server itself %s is the last of a full line", got.ID)
	}
	if _, err := New(nil).Add("a", maxWaitingBytes+1, nil, nil); err == nil {
		t.Error("too many bytes may wait")
	}
	first := q.waiting[0]
	q.waiting = []*Future{first, last}
	ctx, cancel := context.WithCancel(t.Context())
	go q.Run(ctx)
	<-first.Done
	<-last.Done
	for { // the result is listed after done is closed
		if _, err := q.Find(first.ID); err != nil {
			break
		}
	}
	if _, err := q.Find(last.ID); err != nil {
		t.Error(err)
	}
	cancel()
}

// TestLater: other work is done while the result of a piece is waited for.
func TestLater(t *testing.T) {
	q, there := New(nil), make(chan struct{})
	first, err := q.Add("first", 1, func() (any, error) {
		return Later(func() (any, error) { <-there; return "late", nil }), nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := q.Add("second", 1, func() (any, error) { close(there); return "soon", nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	go q.Run(t.Context())
	<-first.Done
	<-second.Done
	if string(first.Result) != `"late"` || first.Err != nil {
		t.Errorf("%s, %v", first.Result, first.Err)
	}
}
