package federated_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	protocol "github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/owner"
	"github.com/starling-network/starling/node/rundir"
)

// front passes requests to the coordinator that there is now. It ends one at the first message of a phase of round 0:
// what that one has in memory is lost, as if its process were killed.
type front struct {
	phase protocol.Phase
	after func() // begins the next coordinator

	mu     sync.Mutex
	to     http.Handler
	ended  bool
	bodies map[string]map[string]bool // messages of round 0, by phase and owner
	next   map[string]bool            // owners that asked for a round after round 0, once the coordinator had ended
	over   chan struct{}              // closed once all four have, or one sent a second message
	once   sync.Once
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.meets(r) {
		go f.after()
	}
	f.mu.Lock()
	to := f.to
	f.mu.Unlock()
	to.ServeHTTP(w, r)
}

// meets takes note of a request, and reports whether the coordinator ends at it.
func (f *front) meets(r *http.Request) (end bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q, name := r.URL.Query(), r.Header.Get("Starling-Owner")
	if f.ended && q.Get("from") == "1" {
		if f.next[name] = true; len(f.next) == 4 {
			f.once.Do(func() { close(f.over) })
		}
	}
	if r.Method != http.MethodPost || q.Get("round") != "0" {
		return false
	}
	body, _ := io.ReadAll(r.Body) // the coordinator refuses a part of one
	r.Body = io.NopCloser(bytes.NewReader(body))
	key := q.Get("phase") + "/" + name
	if f.bodies[key] == nil {
		f.bodies[key] = map[string]bool{}
	}
	if f.bodies[key][string(body)] = true; several(f.bodies[key]) {
		f.once.Do(func() { close(f.over) })
	}
	if end = !f.ended && q.Get("phase") == string(f.phase); end {
		f.ended, f.to = true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		})
	}
	return end
}

// turn passes requests to another coordinator from now on.
func (f *front) turn(to *httptest.Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = to.Config.Handler
}

func newFront(t *testing.T, end protocol.Phase) (*front, string) {
	t.Helper()
	f := &front{phase: end, bodies: map[string]map[string]bool{}, next: map[string]bool{}, over: make(chan struct{})}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return f, s.URL
}

// train lets four owners train in a folder, with a coordinator that is ended at a message of a phase of round 0, and
// another that continues; "": none is ended.
func train(t *testing.T, dir string, end protocol.Phase) *federated.Report {
	t.Helper()
	f, url := newFront(t, end)
	done := make(chan *federated.Report, 1)
	lead := func(ctx context.Context) {
		c, s := coordinator(t, dir)
		f.turn(s)
		go func() {
			r, err := c.Run(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				t.Error(err)
			}
			done <- r
		}()
	}
	ctx, kill := context.WithCancel(t.Context())
	f.after = func() { kill(); lead(t.Context()) }
	lead(ctx)
	var running sync.WaitGroup
	for i := range 4 {
		o := one(t, i, url)
		running.Go(func() {
			if _, err := owner.Join(t.Context(), o); err != nil {
				t.Errorf("owner %d: %v", i, err)
			}
		})
	}
	running.Wait()
	defer kill()
	return <-done
}

// A coordinator that is killed in a phase of a round begins the next one, and the sums are those of a run in which the
// round had none: the models have the same bits.
func TestAKilledCoordinatorContinues(t *testing.T) {
	if testing.Short() {
		t.Skip("trains five times")
	}
	void := t.TempDir()
	c, _ := coordinator(t, void)
	state := fmt.Sprintf(`{"job":%q,"owners":[],"begun":0}`, c.Job())
	if err := os.WriteFile(filepath.Join(void, federated.FileState), []byte(state), 0o644); err != nil {
		t.Fatal(err)
	}
	r := train(t, void, "")
	if r.Rounds != 2 || r.Void != 1 {
		t.Fatalf("%+v", r)
	}
	want, err := os.ReadFile(filepath.Join(void, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range protocol.Phases[1:] {
		dir := t.TempDir()
		r := train(t, dir, p)
		got, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
		if err != nil || r.Void != 1 || r.Rounds != 2 || !bytes.Equal(got, want) {
			t.Errorf("killed in phase %s: %+v, %v, the same model: %t", p, r, err, bytes.Equal(got, want))
		}
		lines, err := rundir.ReadLines[federated.Record](filepath.Join(dir, federated.FileRounds))
		if err != nil || len(lines) != 3 || len(lines[0].Sent) != 4 { // any may have sent a vector, which epsilon counts
			t.Errorf("killed in phase %s: %+v, %v", p, lines, err)
		}
	}
}

// A coordinator that is killed in a round, and begins the same round again from a folder without it, gets no second
// message of an owner: not of one that continues, and not of one that was killed as well and reads its home again. So
// it cannot ask for the other share of any owner.
func TestACoordinatorThatRewinds(t *testing.T) {
	for _, p := range []protocol.Phase{protocol.Survivors, protocol.Secrets} {
		dir := t.TempDir()
		f, url := newFront(t, p)
		c, s := coordinator(t, dir)
		f.turn(s)
		ctx, kill := context.WithCancel(t.Context())
		var leading, running sync.WaitGroup
		run := func(ctx context.Context, c *federated.Coordinator) {
			leading.Go(func() {
				if _, err := c.Run(ctx); ctx.Err() == nil {
					t.Errorf("it ended: %v", err)
				}
			})
		}
		all, end := context.WithCancel(t.Context())
		again := make(chan struct{})
		f.after = func() {
			kill()
			path := filepath.Join(dir, federated.FileState)
			raw, err := os.ReadFile(path)
			old := bytes.Replace(raw, []byte(`"begun": 0`), []byte(`"begun": -1`), 1)
			if err == nil && !bytes.Equal(old, raw) {
				err = os.WriteFile(path, old, 0o644)
			} else if err == nil {
				err = fmt.Errorf("round 0 had not begun: %s", raw)
			}
			if err != nil {
				t.Error(err)
			}
			c, s := coordinator(t, dir)
			f.turn(s)
			run(all, c)
			close(again)
		}
		run(ctx, c)
		for i := range 4 {
			o, home := one(t, i, url), t.TempDir()
			running.Go(func() { lives(all, t, o, home, ctx, i < 2) })
		}
		<-again
		select {
		case <-f.over:
		case <-time.After(time.Minute):
			t.Error("an owner does not ask for the next round")
		}
		end()
		running.Wait()
		leading.Wait()
		for key, bodies := range f.bodies {
			if several(bodies) {
				t.Errorf("%d messages of %.12s in round 0", len(bodies), key)
			}
		}
		if len(f.bodies) < 15 {
			t.Errorf("%d messages", len(f.bodies))
		}
	}
}

func several(messages map[string]bool) bool { return len(messages) > 1 }

// lives takes part with a home, until all is over. If it is killed with the coordinator, it begins again from its
// folder.
func lives(all context.Context, t *testing.T, o owner.Options, home string, coordinator context.Context, killed bool) {
	ctx := all
	if killed {
		ctx = coordinator
	}
	for {
		h, err := owner.OpenHome(home)
		if err != nil {
			t.Error(err)
			return
		}
		o.Home = h
		_, err = owner.Join(ctx, o)
		if wrong := h.Close(); wrong != nil || ctx.Err() == nil {
			t.Errorf("an owner ended: %v", err)
		}
		if all.Err() != nil || !killed {
			return
		}
		ctx, killed = all, false
	}
}
