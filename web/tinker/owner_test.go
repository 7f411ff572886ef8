package tinker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/starling-network/starling/web/access"
)

// owning keeps the paths that it is given.
type owning struct {
	*counting
	mu    sync.Mutex
	paths []Path
}

func (e *owning) note(p Path) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.paths = append(e.paths, p)
}

func (e *owning) Save(_ string, p Path, _ bool) error { e.note(p); return nil }
func (e *owning) Load(_ string, p Path, _ bool) error { e.note(p); return nil }
func (e *owning) Sample(from *Path, s Sample) (*Sampled, error) {
	e.note(*from)
	return e.counting.Sample(from, s)
}

// Results and sampling sessions are there for the token that asked for them, also after a restart, and each path has
// the token of the client that gives it.
func TestTokensSeeTheirOwn(t *testing.T) {
	tokens, err := access.ParseTokens(strings.NewReader("aaaaaaaaaaaaaaaa submit\nbbbbbbbbbbbbbbbb submit\n"))
	if err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	close(open)
	e := &owning{counting: &counting{gate: open}}
	s := New(t.Context(), e, Config{Tokens: tokens, Models: 2})
	as := func(s *Server, who, path, body string) (int, map[string]any) {
		t.Helper()
		method := http.MethodPost
		if strings.HasPrefix(path, "samplers/") {
			method = http.MethodGet
		}
		return answerTo(t, s, method, path, body, strings.Repeat(who, 16))
	}
	done := func(who, path, body string) map[string]any {
		t.Helper()
		_, promised := as(s, who, path, body)
		status, got := as(s, who, "retrieve_future", fmt.Sprintf(`{"request_id": %q}`, promised["request_id"]))
		if status != http.StatusOK || got["error"] != nil {
			t.Fatalf("%s: %v, %d %v", path, promised, status, got)
		}
		return got
	}
	models := map[string]string{}
	for _, who := range []string{"a", "b"} {
		_, begun := as(s, who, "create_session", "{}")
		model := done(who, "create_model", fmt.Sprintf(`{"base_model": "base", "session_id": %q}`, begun["session_id"]))
		models[who] = model["model_id"].(string)
	}
	_, pass := as(s, "a", "forward_backward", passBody(models["a"], "cross_entropy", "", 0))
	id := fmt.Sprintf(`{"request_id": %q}`, pass["request_id"])
	if status, got := as(s, "b", "retrieve_future", id); status != http.StatusGone {
		t.Errorf("the result of another token: %d %v", status, got)
	}
	if status, _ := as(s, "a", "retrieve_future", id); status != http.StatusOK {
		t.Errorf("its own result: %d", status)
	}
	saved := done("a", "save_weights_for_sampler",
		fmt.Sprintf(`{"model_id": %q, "sampling_session_seq_id": 1}`, models["a"]))
	sampler := saved["sampling_session_id"].(string)
	if status, _ := as(s, "b", "samplers/"+sampler, ""); status != http.StatusNotFound {
		t.Errorf("the sampling session of another token: %d", status)
	}
	if status, _ := as(s, "a", "samplers/"+sampler, ""); status != http.StatusOK {
		t.Errorf("its own sampling session: %d", status)
	}
	prompt := `"prompt": {"chunks": [{"type": "encoded_text", "tokens": [1, 2]}]}, "sampling_params": {"max_tokens": 1}`
	if status, _ := as(s, "b", "asample", fmt.Sprintf(`{"sampling_session_id": %q, %s}`, sampler, prompt)); status !=
		http.StatusNotFound {
		t.Errorf("a sample from the session of another token: %d", status)
	}
	path := "tinker://" + models["a"] + "/sampler_weights/w"
	done("b", "asample", fmt.Sprintf(`{"model_path": %q, "num_samples": 1, %s}`, path, prompt))
	done("b", "load_weights", fmt.Sprintf(`{"model_id": %q, "path": "tinker://%s/weights/w"}`, models["b"], models["a"]))
	if len(e.paths) != 3 || e.paths[0].By == "" || e.paths[1].By != e.paths[2].By || e.paths[0].By == e.paths[1].By ||
		e.paths[1].By == "" {
		t.Errorf("%+v", e.paths)
	}
}

// A result that a server before this one has noted is there for its token alone.
func TestResultsAfterRestart(t *testing.T) {
	dir, open := t.TempDir(), make(chan struct{})
	close(open)
	tokens, err := access.ParseTokens(strings.NewReader("aaaaaaaaaaaaaaaa submit\nbbbbbbbbbbbbbbbb submit\n"))
	if err != nil {
		t.Fatal(err)
	}
	start := func(ctx context.Context) *Server {
		s := New(ctx, &lasting{counting: &counting{gate: open}}, Config{Tokens: tokens, Models: 2})
		if err := s.Restore(dir); err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := strings.Repeat("a", 16), strings.Repeat("b", 16)
	ctx, kill := context.WithCancel(t.Context())
	s := start(ctx)
	_, begun := answerTo(t, s, http.MethodPost, "create_session", "{}", a)
	_, model := answerTo(t, s, http.MethodPost, "create_model",
		fmt.Sprintf(`{"base_model": "base", "session_id": %q}`, begun["session_id"]), a)
	_, pass := answerTo(t, s, http.MethodPost, "forward_backward",
		passBody(model["model_id"].(string), "cross_entropy", "", 0), a)
	id := fmt.Sprintf(`{"request_id": %q}`, pass["request_id"])
	answerTo(t, s, http.MethodPost, "retrieve_future", id, a)
	kill()
	s = start(t.Context())
	for _, q := range []string{id, fmt.Sprintf(`{"request_id": %q}`, model["request_id"])} {
		if status, _ := answerTo(t, s, http.MethodPost, "retrieve_future", q, b); status != http.StatusGone {
			t.Errorf("%s for another token: %d", q, status)
		}
		if status, _ := answerTo(t, s, http.MethodPost, "retrieve_future", q, a); status != http.StatusOK {
			t.Errorf("%s: %d", q, status)
		}
	}
}

// Of requests that come twice at the same time, one is done.
func TestTwiceAtOnce(t *testing.T) {
	dir, open := t.TempDir(), make(chan struct{})
	close(open)
	s, e := lasts(t, t.Context(), dir, open)
	_, model := begin(t, s)
	body := fmt.Sprintf(`{"model_id": %q, "seq_id": 1, "adam_params": {}}`, model)
	ids, all := make([]string, 8), sync.WaitGroup{}
	for i := range ids {
		all.Go(func() {
			_, got := send(t, s, "optim_step", body)
			ids[i], _ = got["request_id"].(string)
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Fatalf("%v", ids)
		}
	}
	send(t, s, "retrieve_future", fmt.Sprintf(`{"request_id": %q}`, ids[0]))
	if len(e.steps) != 1 {
		t.Errorf("%d steps", len(e.steps))
	}
}

// answerTo is the answer to a request with a token.
func answerTo(t testing.TB, s *Server, method, path, body, token string) (int, map[string]any) {
	t.Helper()
	r := httptest.NewRequest(method, "http://localhost"+Prefix+path, strings.NewReader(body))
	r.Header.Set("X-API-Key", token)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	answer := map[string]any{}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s: %v: %s", path, err, w.Body)
	}
	return w.Code, answer
}

// A client that names the model of another token while its own waits for a network does not delay that model.
func TestPathsOfOthersDelayNone(t *testing.T) {
	tokens, err := access.ParseTokens(strings.NewReader("aaaaaaaaaaaaaaaa submit\nbbbbbbbbbbbbbbbb submit\n"))
	if err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	close(open)
	e := &stalled{&lasting{counting: &counting{gate: open}}, make(chan struct{})}
	defer close(e.network)
	s := New(t.Context(), e, Config{Tokens: tokens, Models: 2})
	as := func(who, path, body string) map[string]any {
		t.Helper()
		status, got := answerTo(t, s, http.MethodPost, path, body, strings.Repeat(who, 16))
		if status != http.StatusOK || got["error"] != nil {
			t.Fatalf("%s: %d %v", path, status, got)
		}
		return got
	}
	done := func(who, path, body string) map[string]any {
		t.Helper()
		return as(who, "retrieve_future", fmt.Sprintf(`{"request_id": %q}`, as(who, path, body)["request_id"]))
	}
	models := map[string]string{}
	for _, who := range []string{"a", "b"} {
		begun := as(who, "create_session", "{}")
		model := done(who, "create_model", fmt.Sprintf(`{"base_model": "base", "session_id": %q}`, begun["session_id"]))
		models[who] = model["model_id"].(string)
	}
	as("b", "optim_step", fmt.Sprintf(`{"model_id": %q, "seq_id": 1, "adam_params": {}}`, models["b"]))
	as("b", "load_weights", fmt.Sprintf(`{"model_id": %q, "path": "tinker://%s/weights/w"}`, models["b"], models["a"]))
	if got := done("a", "forward_backward", passBody(models["a"], "cross_entropy", "", 0)); got["loss_fn_outputs"] == nil {
		t.Errorf("while the model of another token waits: %v", got)
	}
}
