// Package torchtest finds the PyTorch that tests compare with. It is not part of any program.
package torchtest

import (
	"os/exec"
	"testing"
)

// Debian is the Python for which Debian's package python3-torch is installed.
const Debian = "/usr/bin/python3"

// Installed reports whether a Python has PyTorch. It looks for the module and does not import it, which takes more than
// a second: if it is there and cannot be imported, the test that needs it fails.
func Installed(python string) bool {
	const find = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
	return exec.Command(python, "-I", "-c", find).Run() == nil
}

// Python is Debian; the test is skipped if there is no PyTorch for it.
func Python(t testing.TB) string {
	t.Helper()
	if !Installed(Debian) {
		t.Skip("SKIPPED: " + Debian + " has no PyTorch (apt install python3-torch)")
	}
	return Debian
}
