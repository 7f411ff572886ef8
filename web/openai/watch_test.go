package openai

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// ask sends a request with headers, and returns the answer.
func ask(s *Server, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:1"+path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// Every answer has the identifier of its request, and the log has the identifier with the status and the bytes of the
// answer.
func TestRequestsAreLogged(t *testing.T) {
	var log bytes.Buffer
	s := New(echo{}, Config{Watch: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	id := ask(s, "POST", "/v1/completions", `{"model":"echo","prompt":"a"}`).Header().Get(requestID)
	if line := log.String(); id == "" || !strings.Contains(line, id) || !strings.Contains(line, "status=200") ||
		!strings.Contains(line, "model=echo prompt_tokens=1 completion_tokens=") {
		t.Errorf("%q in %q", id, line)
	}
	other := ask(s, "GET", "/v1/none", "")
	if name := other.Header().Get(requestID); name == "" || name == id || !strings.Contains(log.String(), "status=404") {
		t.Errorf("%q after %q: %s", name, id, log.String())
	}
	// A server that this one is a part of has named the request already.
	w := httptest.NewRecorder()
	w.Header().Set(requestID, "outer")
	s.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/v1/models", nil))
	if got := w.Header().Values(requestID); len(got) != 1 || got[0] != "outer" {
		t.Error(got)
	}
}

// A server that is not a part of another says whether it is well, what it counts and what it is; health without a
// token.
func TestWatch(t *testing.T) {
	var sick error
	s := New(echo{}, Config{Watch: true, Token: "sesame", Health: func() error { return sick }})
	if w := ask(s, "GET", "/health", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"ok"`) {
		t.Error(w.Code, w.Body)
	}
	sick = errors.New("out of memory")
	if w := ask(s, "GET", "/health", ""); w.Code != 503 || strings.Contains(w.Body.String(), "memory") {
		t.Error(w.Code, w.Body)
	}
	if w := ask(s, "GET", "/metrics", ""); w.Code != 401 {
		t.Error(w.Code)
	}
	bearer := []string{"Authorization", "Bearer sesame"}
	ask(s, "POST", "/v1/completions", `{"model":"echo","prompt":"abc"}`, bearer...)
	text := ask(s, "GET", "/metrics", "", bearer...).Body.String()
	for _, line := range []string{`starling_serve_requests_total{status="2xx"} 2`,
		`starling_serve_requests_total{status="4xx"} 1`, "starling_serve_prompt_tokens_total 3",
		"starling_serve_requests_open 1"} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is not in %s", line, text)
		}
	}
	if w := ask(s, "GET", "/", "", bearer...); w.Code != 200 || !strings.Contains(w.Body.String(), "/v1/models") {
		t.Error(w.Code, w.Body)
	}
	if w := ask(New(echo{}, Config{}), "GET", "/health", ""); w.Code != 404 {
		t.Error("a part of another server answers for it:", w.Code)
	}
}

// Pages of the origins in the configuration may read answers; those of others may not, nor any by default.
func TestAllowedOrigins(t *testing.T) {
	before := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers",
		"authorization, x-stainless-os"}
	for name, c := range map[string]struct {
		origins []string
		origin  string
		want    int
	}{
		"named":    {[]string{"https://chat.example"}, "https://chat.example", 200},
		"any":      {[]string{"*"}, "null", 200},
		"other":    {[]string{"https://chat.example"}, "https://chat.example.evil", 403},
		"not told": {nil, "https://chat.example", 403},
	} {
		s := New(echo{}, Config{Token: "sesame", Origins: c.origins})
		w := ask(s, "GET", "/v1/models", "", "Origin", c.origin, "Authorization", "Bearer sesame")
		allowed := w.Header().Get("Access-Control-Allow-Origin")
		if w.Code != c.want || (allowed == c.origin) != (c.want == 200) ||
			(w.Header().Get("Vary") == "Origin") != (c.origins != nil) {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
		// A browser asks first, without the token.
		w = ask(s, "OPTIONS", "/v1/chat/completions", "", append(before, "Origin", c.origin)...)
		if ok := w.Code == http.StatusNoContent; ok != (c.want == 200) || ok &&
			w.Header().Get("Access-Control-Allow-Headers") != "authorization, x-stainless-os" {
			t.Errorf("%s: preflight %d %v", name, w.Code, w.Header())
		}
	}
	rebound := httptest.NewRequest("GET", "http://evil.example/v1/models", nil)
	rebound.Header.Set("Origin", "http://evil.example")
	w := httptest.NewRecorder()
	if New(echo{}, Config{Origins: []string{"*"}}).ServeHTTP(w, rebound); w.Code != http.StatusMisdirectedRequest {
		t.Error("a name that was made to point here is answered:", w.Code)
	}
}

// An image is refused with its index, whatever the other parts are.
func TestPartsThatAreNoText(t *testing.T) {
	body := `{"model":"echo","messages":[{"role":"system","content":"a"},{"role":"user","content":[` +
		`{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}]}`
	r := parse(t, post(t, New(echo{}, Config{}), "/v1/chat/completions", body).Body.Bytes())
	if r.Error == nil || r.Error.Code != "unsupported_content" || r.Error.Param != "messages[1].content[1].type" ||
		!strings.Contains(r.Error.Message, "image_url") {
		t.Errorf("%+v", r.Error)
	}
}
