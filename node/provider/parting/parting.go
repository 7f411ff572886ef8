// Package parting says to the owner of a worker or verifier why its process is done with a run, and whether it is to
// offer work while that run lasts. It ends nothing itself.
package parting

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/role/bundle"
)

// Text says how the work on a job ended, with an error or nil. stopped says that the process ended first. refuses is
// true for a job that the process can or may not work on: it is to offer no work until that run is over, as it would
// be taken in again.
func Text(job string, err error, stopped bool) (text string, refuses bool) {
	short := (*member.ShortageError)(nil)
	switch {
	case errors.As(err, &short):
		code, flag := short.Of.Code()
		return fmt.Sprintf("%s: left %s: %v; give more with %s", code, job, err, flag), true
	case errors.Is(err, bundle.ErrTerms):
		return fmt.Sprintf("TERMS_WRONG: left %s: %v; its consumer has to order it again", job, err), true
	case errors.Is(err, bundle.ErrUndecidable):
		return fmt.Sprintf("UNDECIDABLE: left %s: %v; who takes part in it could lose stake for nothing", job, err), true
	case errors.Is(err, data.ErrShard):
		return fmt.Sprintf("DATA_WRONG: left %s: %v; its consumer has to order it again", job, err), true
	case member.UnacceptableError(err):
		return fmt.Sprintf("JOB_TOO_LARGE: left %s: %v; no member takes as much from a stranger", job, err), true
	case errors.Is(err, member.ErrUnopened):
		return fmt.Sprintf("JOB_UNREACHABLE: left %s: %v; nothing is lost; if it happens with every job, see starling "+
			"doctor --listen", job, err), false
	case err != nil:
		return fmt.Sprintf("left %s: %v", job, err), false
	case stopped:
		return "stopped before it was done with " + job, false
	}
	return "done with " + job, false
}
