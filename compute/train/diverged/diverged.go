// Package diverged is the error of a training that reached numbers which are not finite. It looks for none: package
// train does.
package diverged

import "fmt"

// Error says that training reached a weight that is infinite or NaN: training cannot continue from it, and no
// update can be made of it.
type Error struct {
	Round uint32 // from 0
	What  string // is not finite, and its value
}

// Error implements error. It counts rounds from 1, as people do.
func (e *Error) Error() string {
	return fmt.Sprintf("the training diverged in round %d: %s", e.Round+1, e.What)
}
