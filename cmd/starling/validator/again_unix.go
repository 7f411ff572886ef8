//go:build unix

package validator

import (
	"os"

	"golang.org/x/sys/unix"
)

// startAgain replaces the process by a new one of the same command.
func startAgain() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(self, os.Args, os.Environ())
}
