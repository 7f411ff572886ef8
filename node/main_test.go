package node

import (
	"os"
	"testing"

	"github.com/starling-network/starling/node/provider"
)

// TestMain runs the tests as the program runs: workers of one process leave its network and chain little time.
func TestMain(m *testing.M) {
	provider.SetMaxProcs()
	os.Exit(m.Run())
}
