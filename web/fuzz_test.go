package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/web/sourcetest"
)

// FuzzRequests sends paths and bodies of strangers: whatever comes, an answer goes back and nothing breaks.
func FuzzRequests(f *testing.F) {
	f.Add("GET", "/v1/jobs/first/metrics?points=3&from=-1e308&to=1e308&series=loss", "", "")
	f.Add("GET", "/v1/jobs/first/receipts?after=MTA&limit=3", "", "0.0.0.")
	f.Add("POST", "/v1/jobs", `{"config":"a"}`, "")
	f.Add("GET", "/v1/jobs/%2e%2e/logs?from=-9223372036854775808", "", "")
	s := New(Config{Runs: sourcetest.New(), Launcher: &sourcetest.Launcher{}, Network: sourcetest.Network{},
		Poll: time.Hour})
	f.Fuzz(func(t *testing.T, method, path, body, last string) {
		if strings.Contains(path, "events") {
			return // it does not end by itself
		}
		r, err := http.NewRequest(method, "http://localhost/"+strings.TrimPrefix(path, "/"), strings.NewReader(body))
		if err != nil || strings.Contains(body, "panic") {
			return
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header["Last-Event-Id"] = []string{last}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%s %s: %s", method, path, w.Body)
		}
	})
}
