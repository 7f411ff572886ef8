//go:build !unix

package validator

import "errors"

// startAgain cannot replace the process here.
func startAgain() error { return errors.New("start the command again") }
