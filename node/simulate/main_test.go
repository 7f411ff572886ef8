package simulate

import (
	"flag"
	"os"
	"testing"

	"github.com/starling-network/starling/chain"
)

// Without this flag some of the methods and templates stand for all.
var long = flag.Bool("long", false, "play every method and template of a job, as .ci/run does")

// TestMain collects garbage as seldom as a validator does: the tests play many short-lived chains.
func TestMain(m *testing.M) {
	chain.CollectLess()
	os.Exit(m.Run())
}
