package hours

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/ledger"
	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/node/metrics"
	"github.com/starling-network/starling/node/pause"
	"github.com/starling-network/starling/protocol/standing"
)

// network answers as a test says.
type network struct {
	head    ledger.Head
	err     error
	reasons []standing.Reason
}

func (n *network) Head(context.Context) (ledger.Head, error) { return n.head, n.err }

func (n *network) Standing(context.Context, int64) ([]standing.Reason, error) {
	return n.reasons, n.err
}

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// Reasons of the process itself come before those that the chain has for its account.
func TestSituations(t *testing.T) {
	works := []standing.Reason{{Code: standing.Trains}}
	for name, c := range map[string]struct {
		network network
		process Process
		cause   standing.Cause
		say     string
	}{
		"working": {network{head: ledger.Head{Time: noon}, reasons: works}, Process{}, standing.CauseWorking, ""},
		"no orders": {network{head: ledger.Head{Time: noon}, reasons: []standing.Reason{{Code: standing.NoOrder}}}, Process{},
			standing.CauseNoOrders, ""},
		"paused": {network{head: ledger.Head{Time: noon}, reasons: works}, Process{Pause: pause.State{Paused: true}},
			standing.CausePaused, ""},
		"no room": {network{head: ledger.Head{Time: noon}, reasons: []standing.Reason{{Code: standing.NoOrder}}},
			Process{Refused: map[string]string{"job": "12 GB are needed"}}, standing.CauseDisk, "12 GB are needed; no work"},
		"catching up": {network{head: ledger.Head{Time: noon, CatchingUp: true}, reasons: works}, Process{},
			standing.CauseBehind, "behind"},
		"no blocks": {network{head: ledger.Head{Time: noon.Add(-time.Hour)}, reasons: works}, Process{}, standing.CauseBehind,
			"no block"},
		"its ticket is deleted": {network{err: errors.New("EOF")}, Process{Cut: errors.New("it does not know the ticket")},
			standing.CauseUnreachable, "does not know the ticket"},
		"paused by hours, while it hosts a model": {network{head: ledger.Head{Time: noon},
			reasons: []standing.Reason{{Code: standing.NoOrder}}},
			Process{Pause: pause.State{Paused: true, Why: "hours"}, Busy: []busy.Share{{Class: busy.Hosting, Seconds: 9}}},
			standing.CausePaused, ""},
		"hosting": {network{head: ledger.Head{Time: noon}, reasons: []standing.Reason{{Code: standing.NoOrder}}},
			Process{Busy: []busy.Share{{Class: busy.Training, Seconds: 5}, {Class: busy.Hosting, Seconds: 9}}},
			standing.CauseWorking, "answers requests"},
		"trained before": {network{head: ledger.Head{Time: noon}, reasons: []standing.Reason{{Code: standing.NoOrder}}},
			Process{Busy: []busy.Share{{Class: busy.Training, Seconds: 5}}}, standing.CauseNoOrders, ""},
		"no answer": {network{err: errors.New("connection refused")}, Process{Pause: pause.State{Paused: true}},
			standing.CauseUnreachable, "connection refused"},
	} {
		f := Follower{chain: &c.network, process: func() Process { return c.process }}
		if cause, why := f.look(t.Context(), noon); cause != c.cause || !strings.Contains(why.Text, c.say) {
			t.Errorf("%s: %s, %q", name, cause, why.Text)
		}
	}
}

// Each hour has the reason that took most of it, across restarts and pauses of the machine; the rest is one without a
// process, but for the time before the first one.
func TestHours(t *testing.T) {
	dir := t.TempDir()
	m := metrics.New("", "worker")
	f := New(dir, nil, nil, m, slog.New(slog.DiscardHandler))
	l := &record{dir: dir}
	now := noon.Add(50 * time.Minute)
	notes := func(of time.Duration, c standing.Cause) {
		for end := now.Add(of); now.Before(end); {
			now = now.Add(every)
			f.note(l, now, c, standing.Reason{Text: "because of " + string(c), Do: "something"})
		}
	}
	f.note(l, now, standing.CausePaused, standing.Reason{}) // the process begins
	notes(20*time.Minute, standing.CauseWorking)            // to 13:10
	notes(30*time.Minute, standing.CauseNoOrders)           // to 13:40
	now = now.Add(3 * time.Hour)                            // the machine sleeps
	f.note(l, now, standing.CauseWorking, standing.Reason{})
	kept, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	l = &record{dir: dir, hours: kept} // the next process
	f.note(l, now, standing.CauseWorking, standing.Reason{})
	notes(10*time.Minute, standing.CauseSeat) // to 16:50

	all, err := Read(dir, time.Time{}, now)
	if err != nil || len(all) != 5 || all[0].Begins.Hour() != 16 || all[4].Begins.Hour() != 12 {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, want := range []struct {
		cause   standing.Cause
		seconds float64
	}{{standing.CauseOff, 2400}, {standing.CauseOff, 3600}, {standing.CauseOff, 3600}, {standing.CauseNoOrders, 1800},
		{standing.CauseWorking, 600}} {
		if c := all[i].Main(); c != want.cause || all[i].Seconds[c] != want.seconds {
			t.Errorf("%s: %s for %g s, want %+v", all[i].Begins, c, all[i].Seconds[c], want)
		}
	}
	if s := all[4].Seconds[standing.CauseWorking]; s != 600 {
		t.Errorf("%g s of the first hour were at work", s)
	}
	if r := all[3].Because(standing.CauseNoOrders); r != (Reason{"because of no_orders", "something"}) {
		t.Errorf("%+v", r)
	}
	if r := all[1].Because(standing.CauseOff); r.Text == "" || r.Do == "" {
		t.Errorf("%+v", r)
	}
	if some, err := Read(dir, now.Add(-time.Hour), now); err != nil || !reflect.DeepEqual(some, all[:2]) {
		t.Errorf("%+v, %v", some, err)
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	text := w.Body.String()
	for _, line := range []string{`starling_worker_seconds_total{reason="working"} 1200`,
		`starling_worker_seconds_total{reason="no_orders"} 1800`, `starling_worker_reason{reason="waits_for_seat"} 1`} {
		if !strings.Contains(text, line) {
			t.Errorf("no %s in %s", line, text)
		}
	}
}

// A process whose way to the network ends before it, as the link of a head does, was not cut off: its last time has the
// reason of the look before, and so have the hours after it.
func TestTheLinkEndsBeforeTheProcess(t *testing.T) {
	dir := t.TempDir()
	net := &network{head: ledger.Head{Time: time.Now()},
		reasons: []standing.Reason{{Code: standing.OwnerDrains, Text: "it drains", Do: "ask"}}}
	ctx, cancel := context.WithCancel(t.Context())
	f := New(dir, nil, func() Process { return Process{} }, metrics.New("", "worker"), slog.New(slog.DiscardHandler))
	f.chain = net
	l := &record{dir: dir}
	c, why := f.look(ctx, time.Now())
	f.note(l, time.Now(), c, why)
	cancel()
	net.err = errors.New("use of closed network connection")
	f.end(l)
	all, err := Read(dir, time.Time{}, time.Now().Add(time.Hour))
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if r := all[0].Because(standing.CauseOff); r != (Reason{"the process has ended: it drains", "ask"}) {
		t.Errorf("%+v", r)
	}
	if s, ok := all[1].Seconds[standing.CauseUnreachable]; ok {
		t.Errorf("the network was out of reach for %g s", s)
	}
}

// The hours after a process that its owner has ended have that reason, until another process begins.
func TestRevokedInTheMiddleOfAnHour(t *testing.T) {
	dir := t.TempDir()
	net := &network{head: ledger.Head{Time: time.Now()},
		reasons: []standing.Reason{{Code: standing.Revoked, Text: "its owner revoked the key", Do: "ask it"}}}
	f := New(dir, nil, func() Process { return Process{} }, metrics.New("", "worker"), slog.New(slog.DiscardHandler))
	f.chain = net
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	f.Run(gone)
	now := time.Now()
	all, err := Read(dir, time.Time{}, now.Add(3*time.Hour))
	if err != nil || len(all) != 4 {
		t.Fatalf("%+v, %v", all, err)
	}
	want := Reason{"the process has ended: its owner revoked the key", "ask it"}
	for _, h := range all {
		if r := h.Because(standing.CauseOff); r != want {
			t.Errorf("%s: %+v", h.Begins, r)
		}
	}
	if c := all[0].Main(); c != standing.CauseOff {
		t.Errorf("the main reason of an hour without a process is %s", c)
	}
	f.note(&record{dir: dir, hours: mustLoad(t, dir)}, now.Add(2*time.Hour), standing.CauseWorking, standing.Reason{})
	all, err = Read(dir, time.Time{}, now.Add(3*time.Hour))
	if err != nil || all[0].Because(standing.CauseOff) == want {
		t.Errorf("%+v, %v: a later process was not ended by its owner", all, err)
	}
}

func mustLoad(t *testing.T, dir string) []Hour {
	t.Helper()
	all, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestHoursOfOthersAreRefused(t *testing.T) {
	for _, text := range []string{`{`, `{"hours":[{"hour":"2030-01-02T12:30:00Z"}]}`,
		`{"hours":[{"hour":"2030-01-02T12:00:00Z"},{"hour":"2030-01-02T12:00:00Z"}]}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, File), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir, time.Time{}, noon); err == nil {
			t.Errorf("%s is read", text)
		}
	}
	if all, err := Read(t.TempDir(), time.Time{}, noon); err != nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
}
