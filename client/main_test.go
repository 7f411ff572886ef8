package client_test

import (
	"flag"
	"os"
	"testing"

	"github.com/starling-network/starling/chain/garbage"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // most wait for blocks
	garbage.CollectLess()
	os.Exit(m.Run())
}
