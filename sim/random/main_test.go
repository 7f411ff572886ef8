package random

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the plays make much that is short-lived
	os.Exit(m.Run())
}
