package role

import "fmt"

// LacksLink is why a stage cannot be executed alone: the values of a link into it can be had from no member. Links are
// counted from 1, as in Missing.
type LacksLink struct {
	Link uint32
	Err  error
}

// Error implements error.
func (e *LacksLink) Error() string {
	return fmt.Sprintf("no member serves the values of link %d of the stage: %v", e.Link, e.Err)
}

// Unwrap returns the cause.
func (e *LacksLink) Unwrap() error { return e.Err }
