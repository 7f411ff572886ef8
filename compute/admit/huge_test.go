package admit

import (
	"runtime"
	"testing"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/hugetest"
)

// A validator checks the program of every order, so a program of huge tensors must not take memory or time by their
// size, whether it is admitted or not.
func TestHugeProgramsAreCheckedInLittleMemory(t *testing.T) {
	l := program.Limits{MaxOps: 1 << 15, MaxBytes: 2 << 20, MaxMemory: 1 << 50, MaxFlops: 1e19} // those of the chain
	for name, p := range hugetest.Programs(t) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := Verify(p, l); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: %d bytes are allocated", name, n)
		}
	}
}
