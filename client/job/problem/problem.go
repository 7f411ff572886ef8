// Package problem holds the errors of job files: each has a stable code, a place, a reason and a fix. It checks nothing
// itself.
package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Codes of errors. They are stable: programs may compare them.
const (
	FileNotFound = "JOB_FILE_NOT_FOUND" // the job file, or a file that it names, cannot be read
	BadYAML      = "JOB_BAD_YAML"       // not YAML, or YAML outside the plain subset a job file uses
	UnknownKey   = "JOB_UNKNOWN_KEY"
	DuplicateKey = "JOB_DUPLICATE_KEY"
	MissingKey   = "JOB_MISSING_KEY"
	WrongType    = "JOB_WRONG_TYPE"
	BadValue     = "JOB_BAD_VALUE"    // right type; outside its range, or at odds with another key
	Unsupported  = "JOB_UNSUPPORTED"  // part of the format; this version does not run it
	NoData       = "JOB_NO_DATA"      // a dataset matches no file, or cannot be downloaded
	DataChanged  = "JOB_DATA_CHANGED" // a file at an address has another digest than it must have
	DiskFull     = "JOB_DISK_FULL"    // no room for what is made of the data
	TooLarge     = "JOB_TOO_LARGE"    // more than memory holds, or than can be paid
	Outside      = "JOB_FILE_OUTSIDE" // a file that this job may not read
	BadOverride  = "JOB_BAD_OVERRIDE" // --set without a key
	ManyJobs     = "JOB_MANY"         // a file of several jobs, where one is wanted
)

// Error is one thing wrong with a job file.
type Error struct {
	Code   string
	File   string // as the user named it, or "--set key=value"
	Line   int    // from 1; 0 when the error has no place in the file
	Column int    // from 1
	What   string
	Why    string
	Fix    string
}

// Place is file:line:column, as editors and terminals understand it.
func (e *Error) Place() string {
	if e.Line == 0 {
		return e.File
	}
	return fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
}

// Error is one line: place, what and why.
func (e *Error) Error() string {
	if e.Why == "" {
		return fmt.Sprintf("%s: %s", e.Place(), e.What)
	}
	return fmt.Sprintf("%s: %s: %s", e.Place(), e.What, e.Why)
}

// Explain returns the parts, for reports to a person or a program.
func (e *Error) Explain() (code, place, what, why, fix string) {
	return e.Code, e.Place(), e.What, e.Why, e.Fix
}

// ErrorList is everything wrong with a job file, in the order of the file. It is never empty.
type ErrorList struct{ Errors []*Error }

// Error is one line an error.
func (l *ErrorList) Error() string {
	lines := make([]string, len(l.Errors))
	for i, e := range l.Errors {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the single errors to errors.Is and errors.As.
func (l *ErrorList) Unwrap() []error {
	errs := make([]error, len(l.Errors))
	for i, e := range l.Errors {
		errs[i] = e
	}
	return errs
}

// Join sorts problems by place; nil if there are none.
func Join(problems []*Error) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &ErrorList{Errors: problems}
}

// Note is something the file asks for that is accepted and has no effect on this run, for the user to know.
type Note struct {
	Place string // file:line:column
	Text  string
}
