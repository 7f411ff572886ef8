package work

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestQueueLimits: too much work is refused, and old results are dropped.
func TestQueueLimits(t *testing.T) {
	q := New(nil, 1)
	var last *Future
	for i := range maxWaiting + 1 {
		f, err := q.Add(Piece{ID: strconv.Itoa(i), Bytes: 1,
			Do: func() (any, error) { return strings.Repeat("x", maxKeptBytes/2+1), nil }})
		if (err != nil) != (i == maxWaiting) {
			t.Fatalf("piece %d: %v", i, err)
		}
		if f != nil {
			last = f
		}
	}
	q.Always(Piece{ID: "own"})
	if got := q.waiting[len(q.waiting)-1]; got.ID != "own" {
		t.Errorf("after work of the server itself %s is the last of a full line", got.ID)
	}
	if _, err := New(nil, 1).Add(Piece{ID: "a", Bytes: maxWaitingBytes + 1}); err == nil {
		t.Error("too many bytes may wait")
	}
	first := q.waiting[0]
	q.waiting = []*Future{first, last}
	ctx, cancel := context.WithCancel(t.Context())
	go q.Run(ctx)
	<-first.Done
	<-last.Done
	for { // the result is listed after done is closed
		if _, err := q.Find(first.ID, ""); err != nil {
			break
		}
	}
	if _, err := q.Find(last.ID, ""); err != nil {
		t.Error(err)
	}
	cancel()
}

// TestLater: other work is done while the result of a piece is waited for.
func TestLater(t *testing.T) {
	q, there := New(nil, 1), make(chan struct{})
	first, err := q.Add(Piece{ID: "first", Do: func() (any, error) {
		return Later(func() (any, error) { <-there; return "late", nil }), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	second, err := q.Add(Piece{ID: "second", Do: func() (any, error) { close(there); return "soon", nil }})
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

// TestOwners: one owner fills neither the line nor the room for results of another, who sees no result of the first.
func TestOwners(t *testing.T) {
	q := New(nil, 2)
	for i := range maxWaiting {
		_, err := q.Add(Piece{ID: strconv.Itoa(i), Owner: "a", Bytes: 1})
		if (err == nil) != (i < maxWaiting/2) {
			t.Fatalf("piece %d: %v", i, err)
		}
	}
	if _, err := q.Add(Piece{ID: "large", Owner: "b", Bytes: maxWaitingBytes/2 + 1}); err != nil {
		t.Error(err)
	}
	if _, err := q.Find("0", "b"); err == nil {
		t.Error("a result is seen by another")
	}
	q = New(nil, 2)
	q.Keep("of b", "b", []byte("1"), nil)
	for i := range maxKept + 1 {
		q.Keep(strconv.Itoa(i), "a", []byte("1"), nil)
	}
	_, mine := q.Find("of b", "b")
	_, oldest := q.Find("0", "a")
	_, latest := q.Find(strconv.Itoa(maxKept), "a")
	if mine != nil || oldest == nil || latest != nil || len(q.kept) >= maxKept {
		t.Errorf("%v, %v, %v, %d results", mine, oldest, latest, len(q.kept))
	}
}

// A piece that holds its line delays the later pieces of that line, and those of no other.
func TestHeldLine(t *testing.T) {
	q, there := New(nil, 1), make(chan struct{})
	var order []string
	add := func(id string, lines ...string) *Future {
		f, err := q.Add(Piece{ID: id, Lines: lines, Do: func() (any, error) {
			if order = append(order, id); id == "slow" {
				return Held(func() (any, error) { <-there; return id, nil }), nil
			}
			return id, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	slow, next := add("slow", "a"), add("next", "a")
	both, last, other := add("both", "b", "a"), add("last", "b"), add("other", "c")
	go q.Run(t.Context())
	<-other.Done
	<-add("free").Done
	for _, f := range []*Future{slow, next, both, last} {
		select {
		case <-f.Done:
			t.Errorf("%s is done before the piece that holds its line", f.ID)
		default:
		}
	}
	close(there)
	<-last.Done
	if want := []string{"slow", "other", "free", "next", "both", "last"}; !slices.Equal(order, want) {
		t.Errorf("done in the order %v, want %v", order, want)
	}
}

// Lines take turns: one with much work delays another by one piece.
func TestTurns(t *testing.T) {
	q := New(nil, 1)
	for i := range 5 {
		q.Always(Piece{ID: "a" + strconv.Itoa(i), Lines: []string{"a"}})
	}
	var order []string
	for i := range 8 {
		if i == 1 || i == 2 {
			q.Always(Piece{ID: "b" + strconv.Itoa(i), Lines: []string{"b"}})
		}
		next := q.next()
		if next < 0 {
			break
		}
		order = append(order, q.take(next).ID)
	}
	if want := []string{"a0", "a1", "b1", "a2", "b2", "a3", "a4"}; !slices.Equal(order, want) {
		t.Errorf("done in the order %v, want %v", order, want)
	}
	if len(q.turns) > 0 {
		t.Errorf("turns of lines without work: %v", q.turns)
	}
}
