package access

import (
	"maps"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	for name, text := range map[string]string{"empty": "# none\n", "short": "abc read", "scope": "0123456789abcdef write",
		"no scope": "0123456789abcdef", "limit": "0123456789abcdef submit limit=much",
		"no limit": "0123456789abcdef submit 25", "more": "0123456789abcdef submit limit=1 limit=2",
		"twice": "0123456789abcdef submit limit=1,2ZEN", "nothing": "0123456789abcdef submit limit=",
		"no number": "0123456789abcdef submit limit=usdc",
		"huge":      strings.Repeat("#\n", 40_000)} {
		if _, err := ParseTokens(strings.NewReader(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A request is known by its token, with the limit of the token, and without the token itself.
func TestCallers(t *testing.T) {
	tokens, err := ParseTokens(strings.NewReader(
		"0123456789abcdef read,submit limit=2.5,10usdc\nfedcba9876543210 submit\n"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(token string) Caller {
		r := httptest.NewRequest("POST", "/v1/jobs", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		ctx, err := tokens.Allow(r.Context(), r, Submit)
		if err != nil {
			t.Fatal(err)
		}
		return CallerOf(ctx)
	}
	one, other := ask("0123456789abcdef"), ask("fedcba9876543210")
	if !maps.Equal(one.Limits, map[string]uint64{"": 2_500_000, "usdc": 10_000_000}) || one.Token == "" ||
		strings.Contains("0123456789abcdef", one.Token) {
		t.Errorf("%+v", one)
	}
	if other.Limits != nil || other.Token == one.Token {
		t.Errorf("%+v", other)
	}
	if free := CallerOf(t.Context()); free.Token != "" || free.Limits != nil {
		t.Errorf("without tokens: %+v", free)
	}
}

// An address is on the loopback if no other machine reaches it.
func TestLoopback(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:80": true, "localhost:0": true, "[::1]:80": true, "127.8.8.8:1": true, ":80": false,
		"0.0.0.0:80": false, "[::]:80": false, "10.0.0.7:80": false, "host.localhost:80": false,
	} {
		if got, err := Loopback(listen); err != nil || got != want {
			t.Errorf("%s: %v, %v", listen, got, err)
		}
	}
	if _, err := Loopback("127.0.0.1"); err == nil {
		t.Error("an address without a port")
	}
}
