package tinker

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// lasting is a counting engine whose models outlast the server. It keeps the identifiers of the steps that it was asked
// for.
type lasting struct {
	*counting
	steps, resumed []string
}

func (e *lasting) Resume(model string, _ Create) error {
	e.resumed = append(e.resumed, model)
	return nil
}

func (e *lasting) Step(_ string, s Step) (map[string]float64, error) {
	e.steps = append(e.steps, s.ID)
	return map[string]float64{"round": 1}, nil
}

func lasts(t *testing.T, ctx context.Context, dir string, gate chan struct{}) (*Server, *lasting) {
	t.Helper()
	e := &lasting{counting: &counting{gate: gate}}
	s := New(ctx, e, Config{Models: 2})
	if err := s.Restore(dir); err != nil {
		t.Fatal(err)
	}
	return s, e
}

// A server that is started again has the models of the one before it. It does the requests that were not answered,
// under their identifiers, and has the results of those since the last step; a request that is sent twice is the same.
func TestRestart(t *testing.T) {
	dir, open, shut := t.TempDir(), make(chan struct{}), make(chan struct{})
	close(open)
	ctx, kill := context.WithCancel(t.Context())
	s, _ := lasts(t, ctx, dir, open)
	session, model := begin(t, s)
	_, gone := begin(t, s)
	retrieve := func(s *Server, answer map[string]any) map[string]any {
		t.Helper()
		status, got := send(t, s, "retrieve_future", fmt.Sprintf(`{"request_id": %q}`, answer["request_id"]))
		if status != http.StatusOK || got["error"] != nil {
			t.Fatalf("%d %v", status, got)
		}
		return got
	}
	step := func(number int) string {
		return fmt.Sprintf(`{"model_id": %q, "seq_id": %d, "adam_params": {}}`, model, number)
	}
	_, answer := send(t, s, "unload_model", fmt.Sprintf(`{"model_id": %q}`, gone))
	retrieve(s, answer)
	var ids []map[string]any
	for _, r := range [][2]string{{"forward_backward", passBody(model, "cross_entropy", "", 0)}, {"optim_step", step(1)},
		{"forward_backward", passBody(model, "cross_entropy", "", 2)}, {"optim_step", step(3)}} {
		_, id := send(t, s, r[0], r[1])
		ids = append(ids, id)
		retrieve(s, id)
	}
	kill()

	ctx, kill = context.WithCancel(t.Context())
	s, _ = lasts(t, ctx, dir, shut)
	if got := retrieve(s, ids[3]); got["metrics"] == nil {
		t.Errorf("the result of the last step is %v", got)
	}
	if status, _ := send(t, s, "session_heartbeat", fmt.Sprintf(`{"session_id": %q}`, session)); status != http.StatusOK {
		t.Errorf("the session is answered with %d", status)
	}
	if status, _ := send(t, s, "get_info", fmt.Sprintf(`{"model_id": %q}`, gone)); status != http.StatusNotFound {
		t.Errorf("the model that was unloaded is answered with %d", status)
	}
	// it waits for a gate, so none of these is answered
	_, pass := send(t, s, "forward_backward", passBody(model, "cross_entropy", "", 4))
	_, last := send(t, s, "optim_step", step(5))
	kill()

	ctx, kill = context.WithCancel(t.Context())
	s, e := lasts(t, ctx, dir, open)
	if _, again := send(t, s, "optim_step", step(5)); again["request_id"] != last["request_id"] {
		t.Errorf("the same step is %v, and %v after a restart", last, again)
	}
	retrieve(s, pass)
	if got := retrieve(s, last); got["metrics"] == nil || e.passes != 1 || len(e.steps) != 1 ||
		e.steps[0] != last["request_id"] || len(e.resumed) != 1 || e.resumed[0] != model {
		t.Errorf("%v after %d passes and the steps %v, of the models %v", got, e.passes, e.steps, e.resumed)
	}
	// a pass that is answered has its gradients in memory alone
	_, pass = send(t, s, "forward_backward", passBody(model, "cross_entropy", "", 6))
	retrieve(s, pass)
	kill()
	s, e = lasts(t, t.Context(), dir, open)
	if retrieve(s, pass)["loss_fn_outputs"] == nil {
		t.Error("the result of a pass is gone")
	}
	_, last = send(t, s, "optim_step", step(7))
	if retrieve(s, last); e.passes != 1 || len(e.steps) != 1 {
		t.Errorf("after a restart a step comes after %d passes and the steps %v", e.passes, e.steps)
	}
	_, answer = send(t, s, "unload_model", fmt.Sprintf(`{"model_id": %q}`, model))
	retrieve(s, answer)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// The last line of a log may be cut off: the requests before it are there.
func TestTornLog(t *testing.T) {
	dir, open := t.TempDir(), make(chan struct{})
	close(open)
	ctx, kill := context.WithCancel(t.Context())
	s, _ := lasts(t, ctx, dir, open)
	_, model := begin(t, s)
	_, id := send(t, s, "forward_backward", passBody(model, "cross_entropy", "", 0))
	send(t, s, "retrieve_future", fmt.Sprintf(`{"request_id": %q}`, id["request_id"]))
	kill()
	path := filepath.Join(dir, model+".log")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-9], 0o600); err != nil {
		t.Fatal(err)
	}
	s, e := lasts(t, t.Context(), dir, open)
	_, got := send(t, s, "retrieve_future", fmt.Sprintf(`{"request_id": %q}`, id["request_id"]))
	if got["loss_fn_outputs"] == nil || e.passes != 1 {
		t.Errorf("%v after %d passes", got, e.passes)
	}
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := New(t.Context(), e, Config{}).Restore(dir); err == nil {
		t.Error("a log of no model is taken")
	}
}

// stalled is a lasting engine whose network takes no step before a gate is open.
type stalled struct {
	*lasting
	network chan struct{}
}

func (e *stalled) Step(model string, s Step) (map[string]float64, error) {
	<-e.network
	return e.lasting.Step(model, s)
}

// A step that a network does not take delays the work of its model alone.
func TestStepDelaysItsModelAlone(t *testing.T) {
	open := make(chan struct{})
	close(open)
	e := &stalled{&lasting{counting: &counting{gate: open}}, make(chan struct{})}
	s := New(t.Context(), e, Config{Models: 2, wait: 100 * time.Millisecond})
	_, slow := begin(t, s)
	_, other := begin(t, s)
	retrieve := func(answer map[string]any) map[string]any {
		t.Helper()
		_, got := send(t, s, "retrieve_future", fmt.Sprintf(`{"request_id": %q}`, answer["request_id"]))
		return got
	}
	_, step := send(t, s, "optim_step", fmt.Sprintf(`{"model_id": %q, "seq_id": 1, "adam_params": {}}`, slow))
	_, behind := send(t, s, "forward_backward", passBody(slow, "cross_entropy", "", 2))
	for _, path := range []string{"forward_backward", "forward_backward", "forward_backward"} {
		_, pass := send(t, s, path, passBody(other, "cross_entropy", "", 0))
		got := retrieve(pass)
		for range 100 {
			if got["type"] != "try_again" {
				break
			}
			got = retrieve(pass)
		}
		if got["loss_fn_outputs"] == nil {
			t.Fatalf("beside a step that waits, a pass of another model is answered with %v", got)
		}
	}
	for _, answer := range []map[string]any{step, behind} {
		if got := retrieve(answer); got["type"] != "try_again" {
			t.Errorf("before the network takes the step: %v", got)
		}
	}
	close(e.network)
	for got := retrieve(behind); got["loss_fn_outputs"] == nil; got = retrieve(behind) {
		if got["type"] != "try_again" {
			t.Fatal(got)
		}
	}
}
