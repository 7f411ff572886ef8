package notify

import (
	"encoding/json"
	"errors"
	"fmt"
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

// Events are signed as Standard Webhooks specify: the example is that of the library of the specification.
func TestSignature(t *testing.T) {
	t.Setenv(SecretVariable, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	secret, err := Secret()
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	sign(h, secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got := h.Get("webhook-signature"); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
	for _, text := range []string{"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_AAAA", "whsec_!", "whsec_" +
		strings.Repeat("AAAA", 22)} {
		t.Setenv(SecretVariable, text)
		if _, err := Secret(); !errors.Is(err, ErrSecret) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A repetition of an event has the identifier of the first, and every try is signed.
func TestRepetitionsAreKnown(t *testing.T) {
	var ids []string
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ids = append(ids, r.Header.Get("webhook-id"))
		if r.Header.Get("webhook-signature") == "" || r.Header.Get("webhook-timestamp") == "" {
			t.Errorf("%v", r.Header)
		}
		if calls++; calls == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer s.Close()
	for range 2 { // processes
		n := Open(Config{URL: s.URL, On: []string{MemberLost}, Secret: []byte("secret"), Retry: time.Millisecond})
		n.Lost("worker", "starling1a", "left", 2, Event{Job: "j", Name: "job", Round: 3, Rounds: 8})
		n.Close()
	}
	n := Open(Config{URL: s.URL, On: []string{MemberLost}, Secret: []byte("secret")})
	n.Lost("worker", "starling1b", "left", 1, Event{Job: "j", Name: "job", Round: 3, Rounds: 8})
	n.Close()
	if len(ids) != 4 || ids[0] != ids[1] || ids[0] != ids[2] || ids[0] == ids[3] || ids[0] == "" {
		t.Errorf("%q", ids)
	}
}

// A rise of the loss is one event, until there is a new lowest loss.
func TestRiseOfTheLoss(t *testing.T) {
	s, _, events := server(t, 204)
	n := Open(Config{URL: s.URL, On: []string{LossRises}})
	for i, loss := range []float64{3, 2, 2.1, 1.9, 1.91, 1.92, 1.95, 2.5, 1.5, 1.4, 1.6, 1.7} {
		n.Evaluated(Event{Name: "job", Round: i + 1, Rounds: 12, EvalLoss: &loss})
	}
	n.Evaluated(Event{Name: "job", Round: 12, Rounds: 12})
	n.Close()
	var rounds []int
	for _, e := range events() {
		rounds = append(rounds, e.Round)
		if e.Event != LossRises || !strings.Contains(e.Text, "at its lowest") {
			t.Errorf("%+v", e)
		}
	}
	if fmt.Sprint(rounds) != "[7 12]" {
		t.Errorf("told after the rounds %v", rounds)
	}
}
