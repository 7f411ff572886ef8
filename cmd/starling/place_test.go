package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/internal/porttest"
)

// A worker makes no key in the folder of a validator.
func TestWorkerInFolderOfValidator(t *testing.T) {
	network := filepath.Join(t.TempDir(), "net")
	if code, _, stderr := starling(t, "network", "init", network, "--workers", "0", "--verifiers", "0", "--port",
		fmt.Sprint(porttest.Ports(t, 10))); code != 0 {
		t.Fatal(stderr)
	}
	home := filepath.Join(network, "validator-0")
	code, _, stderr := starling(t, "worker", "up", "--home", home, "--network", "http://127.0.0.1:1")
	if code != 5 || !strings.Contains(stderr, "VALIDATOR_EXISTS") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(home, "key")); err == nil {
		t.Error("it made a key there")
	}
}
