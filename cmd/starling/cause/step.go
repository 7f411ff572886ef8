package cause

import (
	"errors"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/coded"
)

// Step explains an error with a code of its own, whose exit code exits has. Others stay as they are.
func Step(err error, exits map[string]int) error {
	known, ok := errors.AsType[*coded.Error](err)
	if !ok {
		return err
	}
	exit := exits[known.Code]
	p := &terminal.Problem{Code: known.Code, What: known.What, Fix: known.Fix, Retry: exit == terminal.ExitUnreachable}
	if known.Err != nil {
		p.Why = known.Err.Error()
	}
	return terminal.WithExit(p, exit)
}
