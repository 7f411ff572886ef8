package device

import (
	"runtime"
	"testing"

	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/program/hugetest"
)

// The program of a stranger is bound in memory that does not grow with its tensors.
func TestHugeProgramsAreBoundInLittleMemory(t *testing.T) {
	for name, p := range hugetest.Programs(t) {
		var before, after runtime.MemStats
		pl := lower.Program(lower.Fresh(p))
		runtime.ReadMemStats(&before)
		bindAll(pl, nil)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%s: %d MiB are allocated", name, n>>20)
		}
	}
}
