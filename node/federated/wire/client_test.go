package wire

import (
	"context"
	"crypto/ed25519"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// empty answers each request at once, and says that there is nothing yet.
type empty struct{ asked int }

func (e *empty) RoundTrip(r *http.Request) (*http.Response, error) {
	e.asked++
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
}

// A coordinator that holds no request does not keep an owner busy.
func TestAsksAServerThatHoldsNothingNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &empty{}
		c := New("http://localhost", &http.Client{Transport: e}, ed25519.NewKeyFromSeed(make([]byte, 32)), time.Second,
			Wall{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Announced(ctx, 0); err == nil || e.asked < 2 || e.asked > 30 {
			t.Errorf("asked %d times in a second: %v", e.asked, err)
		}
	})
}
