package sim

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // many short-lived chains
	os.Exit(m.Run())
}
