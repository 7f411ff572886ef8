package terminal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Exit codes of the binary. They are stable; a code that is not in this list is a failure.
const (
	ExitOK           = 0
	ExitFailure      = 1
	ExitUsage        = 2   // wrong flags or arguments, or a job file with errors: nothing was started
	ExitNotFound     = 3   // no such job, model or folder
	ExitAuth         = 4   // keys or authentication
	ExitConflict     = 5   // the state is not what the command was made for
	ExitFunds        = 6   // insufficient funds, or the budget is spent
	ExitNoCapacity   = 7   // no worker fits
	ExitUnreachable  = 8   // the network cannot be reached
	ExitTimeout      = 9   // waiting took too long
	ExitVerification = 10  // a result is not what it claims to be
	ExitJobFailed    = 11  // the job that was waited for failed
	ExitFindings     = 12  // checks found problems
	ExitUnsettled    = 13  // a worker that drained ended before its work was settled
	ExitInterrupted  = 130 // Ctrl-C
)

// Exit is an exit code and what it says.
type Exit struct {
	Code int    `json:"code"`
	Text string `json:"text"`
}

// ExitCodes is the table of `starling dev exit-codes`, in order.
var ExitCodes = []Exit{
	{ExitOK, "success"},
	{ExitFailure, "failure"},
	{ExitUsage, "wrong usage or invalid configuration; nothing was started"},
	{ExitNotFound, "not found"},
	{ExitAuth, "authentication or keys"},
	{ExitConflict, "conflict, or a stale plan"},
	{ExitFunds, "insufficient funds, or the budget is spent"},
	{ExitNoCapacity, "no placement: no worker fits"},
	{ExitUnreachable, "network unreachable"},
	{ExitTimeout, "timed out waiting"},
	{ExitVerification, "verification failed"},
	{ExitJobFailed, "the job failed"},
	{ExitFindings, "checks found problems"},
	{ExitUnsettled, "ended before its work was settled"},
	{ExitInterrupted, "interrupted"},
}

// ExitCodesText is the table for people.
func ExitCodesText() string {
	var b strings.Builder
	b.WriteString("Exit codes. A code that is not in the list is a failure.\n\n")
	for _, e := range ExitCodes {
		fmt.Fprintf(&b, "  %3d  %s\n", e.Code, e.Text)
	}
	b.WriteString("\nWith -o json: {\"exit_codes\":[{\"code\",\"text\"}]}.")
	return b.String()
}

// ExitCodesAnswer is the table for programs.
func ExitCodesAnswer() Answer {
	return List(map[string]any{"exit_codes": ExitCodes}, ExitCodes, func(e Exit) string { return strconv.Itoa(e.Code) })
}

// exitError is an error that knows the exit code it deserves.
type exitError struct {
	error
	code int
}

func (e *exitError) Unwrap() error { return e.error }

// WithExit gives an error the code to exit with. WithExit(nil, code) is nil.
func WithExit(err error, code int) error {
	if err == nil {
		return nil
	}
	return &exitError{err, code}
}

// ExitCode is the code to exit with: that of the outermost WithExit, ExitFailure for any other error, ExitOK for nil.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return ExitFailure
}
