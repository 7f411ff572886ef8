package node

import (
	"flag"
	"os"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/starling-network/starling/node/maxprocs"
)

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"train the examples for more steps, and more of them, as .ci/run does")

const garbagePercent = 300 // as GOGC

// TestMain runs the tests as the program runs: workers of one process leave its network and chain little time. Garbage
// is collected seldom, also where a test has node/memory keep it small: with six networks in one process, looking for
// it would take a third of the time.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // most wait for blocks
	maxprocs.Set()
	flag.Parse()
	debug.SetGCPercent(garbagePercent)
	_ = os.Setenv("GOGC", strconv.Itoa(garbagePercent))
	os.Exit(m.Run())
}

// onlyLong skips a test unless the flag -long is set.
func onlyLong(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("with -long")
	}
}
