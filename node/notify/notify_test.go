package notify

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// server answers with these codes, the last of them for ever, and keeps the events that it takes in.
func server(t *testing.T, codes ...int) (*httptest.Server, *atomic.Int32, func() []Event) {
	t.Helper()
	var calls atomic.Int32
	got := make(chan Event, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(calls.Add(1)) - 1
		code := codes[min(n, len(codes)-1)]
		var e Event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil || r.Method != http.MethodPost ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v: %v", r.Method, r.Header, err)
		}
		w.WriteHeader(code)
		if code < 300 {
			got <- e
		}
	}))
	t.Cleanup(s.Close)
	return s, &calls, func() (all []Event) {
		close(got)
		for e := range got {
			all = append(all, e)
		}
		return all
	}
}

func TestSend(t *testing.T) {
	s, calls, events := server(t, 503, 429, 204)
	n := Open(Config{URL: s.URL, On: []string{Finished}, Retry: time.Millisecond,
		Failed: func(err error) { t.Error(err) }})
	n.Send(Event{Event: Failed}, "")
	n.Send(Event{Event: Finished, Job: "job-1", Steps: 8}, "It is over.")
	n.Close()
	n.Close()
	if got := events(); len(got) != 1 || got[0].Job != "job-1" || got[0].Steps != 8 ||
		got[0].Text != "It is over." || got[0].Time.IsZero() || calls.Load() != 3 {
		t.Errorf("%d calls: %+v", calls.Load(), got)
	}
}

// A server that refuses an event is not asked again, and one that never answers right is given up.
func TestGivesUp(t *testing.T) {
	for code, calls := range map[int]int32{404: 1, 500: tries} {
		s, n, _ := server(t, code)
		var why []string
		to := Open(Config{URL: s.URL, On: []string{Paused}, Retry: time.Millisecond,
			Failed: func(err error) { why = append(why, err.Error()) }})
		to.Send(Event{Event: Paused}, "")
		to.Close()
		if n.Load() != calls || len(why) != 1 || !strings.Contains(why[0], "paused is not delivered") {
			t.Errorf("%d: %d calls: %v", code, n.Load(), why)
		}
	}
}

// A server that hangs does not block Send, and blocks Close no longer than its timeout.
func TestHangingServer(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	lost := make(chan error, 2*backlog+1)
	n := Open(Config{URL: s.URL, On: []string{Failed}, CloseTimeout: time.Millisecond,
		Failed: func(err error) { lost <- err }})
	for range 2 * backlog {
		n.Send(Event{Event: Failed}, "")
	}
	n.Close()
	if len(lost) != 2*backlog {
		t.Errorf("%d of %d events are told as lost", len(lost), 2*backlog)
	}
}

func TestNobody(t *testing.T) {
	n := Open(Config{On: []string{Finished}})
	n.Send(Event{Event: Finished}, "")
	n.Close()
	if n.Wants(Finished) {
		t.Error("nobody is told of it")
	}
}

// A job that passes four fifths of its budget, or is paused, causes one event.
func TestSpentAndPause(t *testing.T) {
	s, _, events := server(t, 200)
	n := Open(Config{URL: s.URL, On: []string{Budget80, Paused}})
	paid := uint64(0)
	for _, now := range []uint64{0, 799, 801, 1000} {
		n.Spent(paid, Event{PaidUzen: now, BudgetUzen: 1000, Loss: Known(math.NaN())})
		paid = now
	}
	for _, paused := range []bool{false, true, true, false, true} {
		n.Pause(paused, Event{Round: 2})
	}
	n.Close()
	got := events()
	if len(got) != 3 || got[0].PaidUzen != 801 || got[0].Event != Budget80 || got[1].Event != Paused ||
		got[2].Event != Paused {
		t.Errorf("%+v", got)
	}
	var nobody *Sender
	nobody.Pause(true, Event{})
	nobody.Spent(0, Event{PaidUzen: 1})
}
