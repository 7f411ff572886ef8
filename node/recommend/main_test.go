package recommend

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// Without this flag no candidate of a recommendation is played.
var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "play candidates of a recommendation, as .ci/run does")

// onlyLong skips a test unless the flag -long is set.
func onlyLong(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("with -long")
	}
}

// TestMain collects garbage seldom: the tests play many short-lived chains.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
