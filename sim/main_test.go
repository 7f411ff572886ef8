package sim

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// Tables of scenarios have cases that are played with this flag only, as .ci/run does: variants of a case that is
// always played.
var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "play every case of the tables of scenarios")

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
