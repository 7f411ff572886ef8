package simulate

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// Without this flag some of the methods and templates stand for all.
var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"play every method and template of a job, as .ci/run does")

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
	_ = os.Setenv("GOGC", "400") // simulations leave it, too
	os.Exit(m.Run())
}
