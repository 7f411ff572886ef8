package client_test

import (
	"flag"
	"os"
	"testing"

	"github.com/starling-network/starling/chain"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // most wait for blocks
	chain.CollectLess()
	os.Exit(m.Run())
}
