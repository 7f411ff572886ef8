package server

import (
	"os"
	"testing"

	"github.com/starling-network/starling/chain/garbage"
)

// TestMain collects garbage as seldom as a validator does: the tests play many short-lived chains.
func TestMain(m *testing.M) {
	garbage.CollectLess()
	os.Exit(m.Run())
}
