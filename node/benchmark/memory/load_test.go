package memory

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/node/benchmark"
)

func TestNothingToLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(t.Context(), dir); !errors.Is(err, benchmark.ErrFile) {
		t.Errorf("a folder of no run: %v", err)
	}
}
