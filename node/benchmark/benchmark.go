// Package benchmark runs benches in processes of their own, and has what all of them return: figures, each with the
// bar that it must reach, and the errors of wrong options and files. The packages below it measure: machine the speed
// of this machine, memory the memory of runs, transfer the links between hosts, chain the application, attack the
// cost of attacks, strategies the promises of training methods, browser the dashboard.
//
// They time what they run and return numbers; the caller compares them with references. They have no part in training
// a job: no peers but their own, no state that survives a call.
package benchmark

import (
	"errors"
	"fmt"
)

// ErrOption wraps the refusal of an option that has no meaning.
var ErrOption = errors.New("benchmark")

// Positive reports an option that must be at least 1, and is not.
func Positive(name string, n int) error {
	if n < 1 {
		return fmt.Errorf("%w: %s is %d: give at least 1", ErrOption, name, n)
	}
	return nil
}

// ErrFile wraps every reason why a model or a file of batches cannot be used.
var ErrFile = errors.New("benchmark: unusable file")

// Unusable is the error of a file that cannot be used.
func Unusable(path string, err error) error { return fmt.Errorf("%w: %s: %w", ErrFile, path, err) }
