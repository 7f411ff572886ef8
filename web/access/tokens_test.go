package access

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	for name, text := range map[string]string{"empty": "# none\n", "short": "abc read", "scope": "0123456789abcdef write",
		"no scope": "0123456789abcdef", "limit": "0123456789abcdef submit limit=much",
		"no limit": "0123456789abcdef submit 25", "more": "0123456789abcdef submit limit=1 limit=2",
		"huge": strings.Repeat("#\n", 40_000)} {
		if _, err := ParseTokens(strings.NewReader(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A request is known by its token, with the limit of the token, and without the token itself.
func TestCallers(t *testing.T) {
	tokens, err := ParseTokens(strings.NewReader("0123456789abcdef read,submit limit=2.5\nfedcba9876543210 submit\n"))
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
	if one.Limit == nil || *one.Limit != 2_500_000 || one.Token == "" || strings.Contains("0123456789abcdef", one.Token) {
		t.Errorf("%+v", one)
	}
	if other.Limit != nil || other.Token == one.Token {
		t.Errorf("%+v", other)
	}
	if free := CallerOf(t.Context()); free != (Caller{}) {
		t.Errorf("without tokens: %+v", free)
	}
}
