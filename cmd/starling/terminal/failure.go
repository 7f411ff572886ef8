package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// explained is an error with the parts that a person needs. Place may be empty.
type explained interface {
	error
	Explain() (code, place, what, why, fix string)
}

// Problem is one error in its parts. As an error, it is what a command returns when no package below it says more.
type Problem struct {
	Code  string // stable, for programs: OUTPUT_NOT_EMPTY
	Place string // file:line:column, or ""
	What  string
	Why   string
	Fix   string
	Retry bool // the same command may succeed later
}

// Error is one line.
func (p *Problem) Error() string {
	s := p.What
	if p.Place != "" {
		s = p.Place + ": " + s
	}
	if p.Why != "" {
		s += ": " + p.Why
	}
	return s
}

// Explain gives the parts.
func (p *Problem) Explain() (code, place, what, why, fix string) {
	return p.Code, p.Place, p.What, p.Why, p.Fix
}

// codeUnknown is the code of an error that explains nothing.
const codeUnknown = "FAILURE"

// Explained reports whether anything in an error explains itself.
func Explained(err error) bool { return len(collect(err)) > 0 }

// Problems takes an error apart: every error in its tree that explains itself, in order, or the error as a whole.
func Problems(err error) []Problem {
	if found := collect(err); len(found) > 0 {
		return found
	}
	return []Problem{{Code: codeUnknown, What: err.Error()}}
}

func collect(err error) []Problem {
	switch e := err.(type) {
	case *Problem:
		return []Problem{*e}
	case explained:
		code, place, what, why, fix := e.Explain()
		return []Problem{{Code: code, Place: place, What: what, Why: why, Fix: fix}}
	case interface{ Unwrap() []error }:
		var all []Problem
		for _, inner := range e.Unwrap() {
			all = append(all, collect(inner)...)
		}
		return all
	case interface{ Unwrap() error }:
		return collect(e.Unwrap())
	}
	return nil
}

// maxShown bounds how many errors a person is shown at once.
const maxShown = 20

// PrintError writes an error to w, which is standard error: for people a block for every problem, with asJSON one
// object on one line, {"error":{"code","message","details","fix","retryable"}}. The object is about the first problem;
// details.problems has them all when there are several. retryable says whether the same command may succeed later; it
// is left out of an error that explains nothing.
func PrintError(w io.Writer, err error, asJSON bool) error {
	all := Problems(err)
	if asJSON {
		return printErrorJSON(w, all, passes(err))
	}
	var b strings.Builder
	for _, p := range all[:min(len(all), maxShown)] {
		what := p.What
		if p.Place != "" {
			what = p.Place + ": " + what
		}
		fmt.Fprintf(&b, "error: %s\n", Printable(what))
		for _, part := range []struct{ name, text string }{{"why", p.Why}, {"fix", p.Fix}, {"code", p.Code}} {
			if part.text != "" && part.text != codeUnknown {
				fmt.Fprintf(&b, "  %s: %s\n", part.name, Printable(part.text))
			}
		}
	}
	if more := len(all) - maxShown; more > 0 {
		fmt.Fprintf(&b, "error: and %d more\n", more)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

type jsonProblem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Place   string `json:"place,omitempty"`
	Why     string `json:"why,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

type jsonDetails struct {
	Place    string        `json:"place,omitempty"`
	Why      string        `json:"why,omitempty"`
	Problems []jsonProblem `json:"problems,omitempty"`
}

// passes reports whether what an exit code stands for may be otherwise later, without a change of the command.
func passes(err error) bool {
	switch ExitCode(err) {
	case ExitNoCapacity, ExitUnreachable, ExitTimeout:
		return true
	}
	return false
}

func printErrorJSON(w io.Writer, all []Problem, retryable bool) error {
	first := all[0]
	details := jsonDetails{Place: first.Place, Why: first.Why}
	if len(all) > 1 {
		for _, p := range all {
			details.Problems = append(details.Problems, jsonProblem{p.Code, p.What, p.Place, p.Why, p.Fix})
		}
	}
	var out struct {
		Error struct {
			Code      string      `json:"code"`
			Message   string      `json:"message"`
			Details   jsonDetails `json:"details"`
			Fix       string      `json:"fix"`
			Retryable *bool       `json:"retryable,omitempty"`
		} `json:"error"`
	}
	out.Error.Code, out.Error.Message, out.Error.Details, out.Error.Fix = first.Code, first.What, details, first.Fix
	if retryable = retryable || first.Retry; first.Code != codeUnknown {
		out.Error.Retryable = &retryable
	}
	return JSON.Print(w, One(out, ""))
}

// Interrupted is the error of a command that the user stopped; resume is the command that resumes it, or "".
func Interrupted(resume string) error {
	p := &Problem{Code: "INTERRUPTED", What: "stopped before the end", Why: "Ctrl-C", Fix: "run it again"}
	if resume != "" {
		p.Why, p.Fix = "Ctrl-C; nothing that was attested is lost", "continue with: "+resume
	}
	return WithExit(p, ExitInterrupted)
}

// Printable keeps text of strangers from moving the cursor or hiding: control characters become spaces.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, s)
}

// IfInterrupted turns the error of a cancelled context into the answer to Ctrl-C.
func IfInterrupted(ctx context.Context, err error, resume string) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return Interrupted(resume)
	}
	return err
}
