package node

import (
	"os"
	"testing"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/node/provider"
)

// TestMain runs the tests as the program runs: workers of one process leave its network and chain little time. It
// collects garbage as seldom as a validator does.
func TestMain(m *testing.M) {
	provider.SetMaxProcs()
	chain.CollectLess()
	os.Exit(m.Run())
}
