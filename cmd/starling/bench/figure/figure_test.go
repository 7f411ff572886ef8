package figure

import (
	"errors"
	"strings"
	"testing"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/benchmark"
)

// A bench whose figures miss bars says which, with an exit code of its own; bars that hold, or that no tool could
// measure, change nothing.
func TestBarsThatAreMissed(t *testing.T) {
	holds, misses := benchmark.AtLeast("share", 0.91, 0.9), benchmark.AtMost("seconds", 11, 10)
	printed := errors.New("full")
	err := Judge([]benchmark.Bar{holds, misses, holds}, nil)
	p, ok := errors.AsType[*terminal.Problem](err)
	if !ok || terminal.ExitCode(err) != terminal.ExitFindings || p.Code != "BARS_MISSED" ||
		!strings.Contains(p.What, "1 of 3 bars missed: seconds") {
		t.Errorf("%v, exit %d", err, terminal.ExitCode(err))
	}
	if err := Judge([]benchmark.Bar{holds}, nil); err != nil {
		t.Error(err)
	}
	if err := Judge([]benchmark.Bar{misses}, printed); !errors.Is(err, printed) {
		t.Errorf("%v", err)
	}
	value := 0.5
	bar := benchmark.OptionalBar{Name: "share", Bar: 0.9, Missing: "a tool"}
	if err := Judge([]benchmark.OptionalBar{bar}, nil); err != nil {
		t.Error(err)
	}
	bar.Value = &value
	if err := Judge([]benchmark.OptionalBar{bar}, nil); err == nil {
		t.Error("a bar that was measured and missed does not count")
	}
}
