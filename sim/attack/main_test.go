package attack

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// Without this flag fewer mixes are played.
var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"play more mixes, and adversaries with more seats, as .ci/run does")

// onlyLong skips a test unless the flag -long is set.
func onlyLong(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("with -long")
	}
}

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // many short-lived chains
	os.Exit(m.Run())
}
