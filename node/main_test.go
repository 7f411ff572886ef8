package node

import (
	"flag"
	"os"
	"testing"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/node/provider"
)

var long = flag.Bool("long", false, "train the examples for more steps, and more of them, as .ci/run does")

// TestMain runs the tests as the program runs: workers of one process leave its network and chain little time. It
// collects garbage as seldom as a validator does.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // most wait for blocks
	provider.SetMaxProcs()
	chain.CollectLess()
	os.Exit(m.Run())
}
