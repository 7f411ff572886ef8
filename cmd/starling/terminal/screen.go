package terminal

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether a file is a terminal that can redraw a line.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" }

// Width returns a function that asks a terminal for its columns, 80 when it does not say.
func Width(f *os.File) func() int {
	return func() int {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
		return 80
	}
}

// ModeFor chooses how progress is shown on a file.
func ModeFor(f *os.File, quiet bool) Mode {
	switch {
	case quiet:
		return Quiet
	case IsTerminal(f):
		return Line
	}
	return Plain
}
