// Package coded has the error of a step that a person takes with files and a network: a stable code, what happened, and
// what to do. The codes are those of the packages that make the errors. It decides nothing and prints nothing.
package coded

import (
	"context"
	"errors"
)

// Error says why a step failed. It contains no secrets.
type Error struct {
	Code string
	What string // a clause: what happened
	Fix  string // what to do
	Err  error  // the cause; may be nil
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.What
	}
	return e.What + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// OnDisk gives an error of a file, such as "a file of the sale", a code. Errors that have one, and the end of a
// context, stay as they are.
func OnDisk(err error, code, file string) error {
	if _, ok := errors.AsType[*Error](err); ok || err == nil || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{Code: code, What: file + " cannot be read or written", Err: err,
		Fix: "check that this user may read and write it, and that the disk has room; the same command continues"}
}
