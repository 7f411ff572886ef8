package faucet

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAsk(t *testing.T) {
	const address = "starling1x"
	for name, c := range map[string]struct {
		status int
		header string
		body   string
		code   string
		wait   time.Duration
	}{
		"a gift": {status: 200, body: `{"address":"starling1x","amount_uzen":5,"hash":"ab","height":7}`},
		"a limit": {429, "3600", `{"code":"FAUCET_LIMIT","error":"this host\u001b[2J got coins"}`, "FAUCET_LIMIT",
			time.Hour},
		"another page":    {404, "", "<html>", "NO_FAUCET", 0},
		"another address": {200, "", `{"address":"starling1y","amount_uzen":5}`, "NO_FAUCET", 0},
		"no JSON":         {200, "", strings.Repeat("x", 1<<20), "NO_FAUCET", 0},
		"a senseless wait": {502, "-1", `{"code":"FAUCET_FAILED","error":"` + strings.Repeat("y", 5000) + `"}`,
			"FAUCET_FAILED", 0},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", c.header)
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		g, err := Ask(t.Context(), s.URL, address)
		s.Close()
		if c.code == "" {
			if err != nil || g.Uzen != 5 || g.Height != 7 {
				t.Errorf("%s: %+v, %v", name, g, err)
			}
			continue
		}
		r, ok := errors.AsType[*Refused](err)
		if !ok || !errors.Is(err, ErrRefused) || r.Code != c.code || r.Wait != c.wait || len(r.Text) > maxText ||
			strings.ContainsRune(r.Text, 0x1b) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Ask(t.Context(), "http://127.0.0.1:1/", address); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("nothing listens there: %v", err)
	}
}
