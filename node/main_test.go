package node

import (
	"flag"
	"os"
	"testing"

	"github.com/starling-network/starling/chain/garbage"
	"github.com/starling-network/starling/node/provider"
)

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"train the examples for more steps, and more of them, as .ci/run does")

// TestMain runs the tests as the program runs: workers of one process leave its network and chain little time. It
// collects garbage as seldom as a validator does.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // most wait for blocks
	provider.SetMaxProcs()
	flag.Parse()
	garbage.CollectLess() // many networks in one process: looking for garbage would take a third of its time
	os.Exit(m.Run())
}

// onlyLong skips a test unless the flag -long is set.
func onlyLong(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("with -long")
	}
}
