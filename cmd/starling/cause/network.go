package cause

import (
	"errors"

	"github.com/starling-network/starling/chain/clock"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/keystore"
)

// Network gives the errors of networks their codes.
func Network(err error) error {
	stopped := (*endpoint.Halted)(nil)
	switch {
	case errors.As(err, &stopped):
		return terminal.WithExit(&terminal.Problem{Code: stopped.Code, What: "the validator is stopped", Why: stopped.Why,
			Fix: stopped.Fix}, terminal.ExitFailure)
	case errors.Is(err, keystore.ErrNetworkExists):
		return terminal.WithExit(&terminal.Problem{Code: "NETWORK_EXISTS", What: err.Error(),
			Why: "keys are never overwritten", Fix: "give another folder, or remove this one"}, terminal.ExitConflict)
	case errors.Is(err, keystore.ErrNoNetwork):
		return terminal.WithExit(&terminal.Problem{Code: "NETWORK_NOT_FOUND", What: err.Error(),
			Fix: "make one with starling network init"}, terminal.ExitNotFound)
	case errors.Is(err, clock.ErrClock):
		return terminal.WithExit(&terminal.Problem{Code: "CLOCK_WRONG", What: err.Error(),
			Why: "a validator whose clock is slow cannot follow the others",
			Fix: "set the clock, best by NTP, and start the validator again: it catches up"}, terminal.ExitConflict)
	case errors.Is(err, keystore.ErrNoValidator):
		return terminal.WithExit(&terminal.Problem{Code: "VALIDATOR_NOT_FOUND", What: err.Error(),
			Fix: "give a validator's folder of a network that starling network init made"}, terminal.ExitNotFound)
	}
	return err
}
