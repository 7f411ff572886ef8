package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/tinker"
)

// still is an engine of training loops that computes nothing.
type still struct{ tinker.Engine }

func (still) Base() tinker.Base                  { return tinker.Base{Name: "base", Context: 8, Vocab: 10} }
func (still) Create(string, tinker.Create) error { return nil }

// Training loops are answered at the address of the jobs, to the same tokens, each of which has models of its own, with
// bodies larger than those of jobs. They are described as the other operations are.
func TestLoops(t *testing.T) {
	tokens, err := access.ParseTokens(strings.NewReader("0123456789abcdef read,submit\nfedcba9876543210 submit\n" +
		"readsreadsreads0 read\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := server(t, Config{Tokens: tokens, Loops: tinker.New(t.Context(), still{}, tinker.Config{Models: 2})})
	ask := func(s *Server, method, path, key, body string) (int, map[string]any) {
		t.Helper()
		r := httptest.NewRequest(method, "http://localhost/api/v1/"+path, strings.NewReader(body))
		if key != "" {
			r.Header.Set("X-API-Key", key)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		answer := map[string]any{}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%s: %v: %s", path, err, w.Body)
		}
		return w.Code, answer
	}
	const mine, other = "0123456789abcdef", "fedcba9876543210"
	_, begun := ask(s, "POST", "create_session", mine, "{}")
	create := func(key string) (int, map[string]any) {
		return ask(s, "POST", "create_model", key,
			`{"base_model": "base", "session_id": "`+begun["session_id"].(string)+`"}`)
	}
	if status, answer := create(mine); status != http.StatusOK || answer["model_id"] == nil {
		t.Errorf("a model: %d %v", status, answer)
	}
	if status, answer := create(other); status != http.StatusNotFound || answer["code"] != "SESSION_UNKNOWN" {
		t.Errorf("in the session of another token: %d %v", status, answer)
	}
	large := `{"events": ["` + strings.Repeat("a", 2<<20) + `"]}`
	for _, c := range []struct {
		method, path, key, body string
		status                  int
		code                    string
	}{{"GET", "healthz", "", "", 200, ""}, {"POST", "create_session", "", "{}", 401, "TOKEN_NEEDED"},
		{"POST", "create_session", "readsreadsreads0", "{}", 403, "SCOPE_MISSING"},
		{"POST", "telemetry", mine, large, 200, ""}, {"POST", "elsewhere", mine, "{}", 404, "UNKNOWN_URL"},
		{"GET", "optim_step", mine, "", 404, "UNKNOWN_URL"}, {"GET", "samplers/x", mine, "", 404, "SAMPLER_UNKNOWN"},
		{"POST", "telemetry", mine, strings.Repeat(" ", 16<<20+1), 413, "BODY_TOO_LARGE"}} {
		status, answer := ask(s, c.method, c.path, c.key, c.body)
		if code, _ := answer["code"].(string); status != c.status || code != c.code {
			t.Errorf("%s %s: %d %v, want %d %s", c.method, c.path, status, answer, c.status, c.code)
		}
	}
	status, answer := ask(server(t, Config{}), "POST", "create_session", "", "{}")
	if status != http.StatusNotImplemented || answer["code"] != "LOOPS_OFF" {
		t.Errorf("a server without loops: %d %v", status, answer)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/openapi.json", nil))
	var doc struct {
		Paths map[string]map[string]struct {
			Tags  []string
			Scope string                    `json:"x-scope"`
			Body  map[string]any            `json:"requestBody"`
			On    map[string]map[string]any `json:"responses"`
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	o := doc.Paths["/api/v1/optim_step"]["post"]
	if len(o.Tags) != 1 || o.Tags[0] != "Training loops" || o.Scope != access.Submit || o.Body == nil ||
		o.On["409"] == nil {
		t.Errorf("a step is described as %+v", o)
	}
}
