package peer

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // most wait for timeouts
	os.Exit(m.Run())
}
