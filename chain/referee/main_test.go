package referee

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the tests make much that is short-lived, of little live data
	os.Exit(m.Run())
}
