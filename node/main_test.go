package node

import (
	"os"
	"testing"
)

// TestMain runs the tests as the program runs: workers of one process leave its network and chain little time.
func TestMain(m *testing.M) {
	MakeRoom()
	os.Exit(m.Run())
}
