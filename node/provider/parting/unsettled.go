package parting

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unsettled is the error of a process that drained, and ended before its work was settled.
type Unsettled struct {
	Why    string   // it ended
	Offers bool     // its offer may still stand
	Runs   []string // in which something of it is open
}

// NewUnsettled returns one for a process with its runs.
func NewUnsettled[R any](why string, offers bool, runs map[string]R) *Unsettled {
	return &Unsettled{Why: why, Offers: offers, Runs: slices.Sorted(maps.Keys(runs))}
}

// Left is what is not settled.
func (u *Unsettled) Left() string {
	var left []string
	if u.Offers {
		left = append(left, "its offer of work is not taken back")
	}
	if len(u.Runs) > 0 {
		left = append(left, "it has a part in "+strings.Join(u.Runs, ", "))
	}
	if len(left) == 0 {
		return "the last of its other work is not over"
	}
	return strings.Join(left, ", and ")
}

func (u *Unsettled) Error() string {
	return fmt.Sprintf("provider: it ends before its work is settled: %s; %s", u.Why, u.Left())
}
