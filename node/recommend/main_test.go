package recommend

import (
	"flag"
	"os"
	"testing"

	"github.com/starling-network/starling/chain"
)

// Without this flag three of the candidates of a recommendation are played.
var long = flag.Bool("long", false, "play more candidates of a recommendation, as .ci/run does")

// TestMain collects garbage as seldom as a validator does: the tests play many short-lived chains.
func TestMain(m *testing.M) {
	chain.CollectLess()
	os.Exit(m.Run())
}
