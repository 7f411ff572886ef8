package server

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/node/dashboard"
)

func TestStrangersNeedTokens(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.7:0", "example.org:0"} {
		if err := Serve(t.Context(), t.TempDir(), dashboard.WebOptions{Listen: listen}); !errors.Is(err,
			dashboard.ErrOpenToAll) {
			t.Errorf("%s: %v", listen, err)
		}
	}
}
