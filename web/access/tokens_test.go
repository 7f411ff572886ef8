package access

import (
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	for name, text := range map[string]string{"empty": "# none\n", "short": "abc read", "scope": "0123456789abcdef write",
		"no scope": "0123456789abcdef", "huge": strings.Repeat("#\n", 40_000)} {
		if _, err := ParseTokens(strings.NewReader(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
