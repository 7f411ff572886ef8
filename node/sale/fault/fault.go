// Package fault has the error of the packages of a sale: a stable code, what happened, and what to do. It decides
// nothing and prints nothing.
package fault

import (
	"context"
	"errors"
)

// Codes of errors. They are stable.
const (
	BadFolder   = "SALE_FOLDER"      // the files cannot be offered
	BadIndex    = "SALE_INDEX"       // the index is not that of the offer
	BadSealed   = "SALE_SEALED"      // the encrypted file is not that of the offer
	BadBox      = "SALE_BOX"         // a mask cannot be encrypted or decrypted
	Exists      = "SALE_EXISTS"      // a folder holds something else
	Unreachable = "SALE_UNREACHABLE" // no location of the offer gives the files
	Closed      = "SALE_CLOSED"      // the offer takes no new orders
	Late        = "SALE_LATE"        // the seller lied, and has the price
	OtherOffer  = "SALE_OTHER_OFFER" // the folder belongs to another offer
	Disk        = "SALE_DISK"        // a file of this machine cannot be read or written
)

// Error says why a step of a sale failed. It contains no secrets.
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

// OnDisk gives an error of a file its code. Errors that have one, and the end of a context, stay as they are.
func OnDisk(err error) error {
	if _, ok := errors.AsType[*Error](err); ok || err == nil || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{Code: Disk, What: "a file of the sale cannot be read or written", Err: err,
		Fix: "check that this user may read and write it, and that the disk has room; the same command continues"}
}
