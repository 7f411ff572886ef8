// Package parcel is what the stores below node/push have in common: the file that is sent, the error with which
// sending ends, and a request whose body is part of a file. It knows no store.
package parcel

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/starling-network/starling/node/coded"
)

// File is a file of a model.
type File struct {
	Name   string // in the store, with slashes
	Path   string // on this machine
	Bytes  int64
	SHA256 string // hexadecimal
}

// Codes of errors. They are stable.
const (
	BadTarget   = "PUSH_TARGET"      // the name of the target has no form that is known
	Credentials = "PUSH_CREDENTIALS" // there are none, or the store does not know them
	Denied      = "PUSH_DENIED"      // the credentials do not permit it
	NotFound    = "PUSH_NOT_FOUND"   // the store has no such bucket or repository
	Region      = "PUSH_REGION"      // the bucket is in another region
	Unreachable = "PUSH_UNREACHABLE" // the store does not answer, or is overloaded
	Refused     = "PUSH_REFUSED"     // the store refuses it for another reason
	NoModel     = "PUSH_NO_MODEL"    // the folder holds none
	Disk        = "PUSH_DISK"        // a file of this machine cannot be read or written
	Conflict    = "PUSH_CONFLICT"    // another client changes the target at the same time
)

// Error says why a push failed. It contains no credentials. Fix is "" if only time helps.
type Error = coded.Error

// Later reports whether the same push may succeed later, with nothing changed.
func Later(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Code == Unreachable || e.Code == Conflict)
}

// OnDisk is the error of a file of this machine.
func OnDisk(err error) *Error {
	return &Error{Code: Disk, What: "a file cannot be read or written", Err: err,
		Fix: "check that the file is there, that this user may read it, and that the disk works"}
}

// Open opens a file for sending. The error says so if its size is not that of f: it has changed since.
func (f File) Open() (*os.File, error) {
	r, err := os.Open(f.Path)
	if err != nil {
		return nil, OnDisk(err)
	}
	info, err := r.Stat()
	if err == nil && info.Size() != f.Bytes {
		err = fmt.Errorf("%s has %d bytes and had %d", f.Path, info.Size(), f.Bytes)
	}
	if err != nil {
		_ = r.Close()
		return nil, OnDisk(err)
	}
	return r, nil
}

// Digest is the SHA-256 of n bytes from an offset, in hexadecimal.
func Digest(r io.ReaderAt, offset, n int64) (string, error) {
	h := sha256.New()
	got, err := io.Copy(h, io.NewSectionReader(r, offset, n))
	if err == nil && got != n {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return "", OnDisk(err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
