package faucet

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/wallet"
)

func TestFaucet(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var sent []string
	fails := false
	open := func(path string) *Faucet {
		t.Helper()
		f, err := Open(path, Limits{Amount: 10, PerHost: 2, Total: 30},
			func(_ context.Context, to string, uzen uint64) (string, int64, error) {
				if fails {
					return "", 0, errors.New("the chain is away")
				}
				sent = append(sent, to)
				return "AB", 7, nil
			}, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	var all []string
	for i := range byte(6) {
		all = append(all, wallet.KeyFromSeed([32]byte{i}).Address())
	}
	path := filepath.Join(t.TempDir(), "faucet.jsonl")
	f := open(path)
	ask := func(host, address string, want int, code string) {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"address": "`+address+`"}`))
		r.RemoteAddr = host + ":1234"
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		var got struct{ Code, Hash string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != want || got.Code != code {
			t.Errorf("%s for %s: %d %s (%v)", address, host, w.Code, w.Body, err)
		}
		if want == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: when to come again is not said", address)
		}
	}
	ask("10.0.0.1", "starling1nobody", 400, "ADDRESS_INVALID")
	ask("10.0.0.1", strings.Repeat("x", 2*maxBody), 400, "ADDRESS_INVALID")
	ask("10.0.0.1", all[0], 200, "")
	ask("10.0.0.2", all[0], 429, "FAUCET_LIMIT")
	ask("10.0.0.1", all[1], 200, "")
	ask("10.0.0.1", all[2], 429, "FAUCET_LIMIT") // of the host
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = open(path) // nothing is forgotten
	defer f.Close()
	ask("10.0.0.1", all[2], 429, "FAUCET_LIMIT")
	fails = true
	ask("10.0.0.3", all[3], 502, "FAUCET_FAILED")
	fails = false
	ask("10.0.0.4", all[4], 429, "FAUCET_LIMIT") // of all
	now = now.Add(day)
	ask("10.0.0.1", all[0], 200, "")
	if len(sent) != 3 {
		t.Errorf("sent to %v", sent)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"amount_uzen":10`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for method, path := range map[string]string{"PUT": "/", "GET": "/x"} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != 405 && w.Code != 404 {
			t.Errorf("%s %s: %d", method, path, w.Code)
		}
	}
	if _, err := Open(path, Limits{Amount: 10, PerHost: 1, Total: 9}, nil, time.Now); err == nil {
		t.Error("limits below a gift")
	}
}
