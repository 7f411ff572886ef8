//go:build !unix

package main

import "errors"

// startAgain cannot replace the process here.
func startAgain() error { return errors.New("start the command again") }
