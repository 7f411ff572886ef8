package role

import "fmt"

// LacksLink is why a stage cannot be executed alone: the values of links into it can be had from no member. Links are
// counted from 1, as in Missing, and in order. There is at least one.
type LacksLink struct {
	Links []uint32
	Err   error
}

// Error implements error.
func (e *LacksLink) Error() string {
	return fmt.Sprintf("no member serves the values of links %v of the stage: %v", e.Links, e.Err)
}

// Unwrap returns the cause.
func (e *LacksLink) Unwrap() error { return e.Err }
