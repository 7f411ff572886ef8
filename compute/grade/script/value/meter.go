// Package value holds the values of scripts and the operations on them. Every operation spends its cost before it makes
// something. The package does not know the language: compute/grade/script evaluates it.
package value

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of operations.
var (
	ErrFailed = errors.New("script: failed")     // wrong operations on values, or a call of fail
	ErrCost   = errors.New("script: too costly") // the bound of the cost is reached
)

// Meter counts the cost of a call.
type Meter struct {
	Left  int           // that may be spent
	Where func() string // place in the source, for errors
}

// Failure is what an operation panics with that has no result.
type Failure struct{ Err error }

// Spend counts a cost.
func (m *Meter) Spend(n int) {
	if n < 0 || n > m.Left {
		m.Left = 0
		panic(Failure{fmt.Errorf("%w at %s", ErrCost, m.Where())})
	}
	m.Left -= n
}

// Bytes counts the cost of reading or making a text.
func (m *Meter) Bytes(n int) { m.Spend(n/16 + 1) }

// Fail ends the call.
func (m *Meter) Fail(format string, args ...any) {
	panic(Failure{fmt.Errorf("%w at %s: %s", ErrFailed, m.Where(), fmt.Sprintf(format, args...))})
}

// maxDepth bounds values in values, and calls.
const maxDepth = 64

// Deep fails for values, or calls, that are nested too deep.
func Deep(m *Meter, depth int) {
	if depth > maxDepth {
		m.Fail("values are nested more than %d deep", maxDepth)
	}
}

// Clip shortens a text for an error.
func Clip(s string) string {
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
