package cause

import (
	"errors"

	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/fleet/head"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/home"
)

// Home gives the errors of a party's folder their codes.
func Home(err error) error {
	problem, code := &terminal.Problem{What: err.Error()}, terminal.ExitAuth
	switch {
	case errors.Is(err, home.ErrPhrase):
		problem.Code, problem.Fix = "PHRASE_INVALID", "give the 24 words in their order; a word missing or wrong shows in "+
			"the check"
	case errors.Is(err, home.ErrBadKey):
		problem.Code, problem.Fix = "KEY_UNREADABLE", "restore the folder from its backup phrase in another place"
	case errors.Is(err, home.ErrNoKey):
		problem.Code, problem.Fix, code = "KEY_NOT_FOUND",
			"give the folder of a worker or verifier, or make one with starling worker identity --home DIR",
			terminal.ExitNotFound
	case errors.Is(err, identity.ErrNoSecret):
		problem.Code, problem.Fix, code = "KEY_NOT_FOUND", "give the folder of a validator", terminal.ExitNotFound
	case errors.Is(err, home.ErrKeyExists), errors.Is(err, identity.ErrSecretExists):
		problem.Code, problem.Why, problem.Fix, code = "KEY_EXISTS", "keys are never overwritten", "give another folder",
			terminal.ExitConflict
	case errors.Is(err, folder.ErrInUse):
		problem.Code, problem.Why, problem.Fix, code = "HOME_IN_USE", "one identity works in one process",
			"stop the process that runs over it, or give another folder", terminal.ExitConflict
	default:
		return err
	}
	return terminal.WithExit(problem, code)
}

// Invitation explains why a text is no invitation to a fleet.
func Invitation(err error) error {
	return terminal.WithExit(&terminal.Problem{Code: "INVITATION_INVALID", What: "--enrol names no invitation",
		Why: err.Error(), Fix: "give the whole line that starling fleet add printed, or the file that it wrote"},
		terminal.ExitUsage)
}

// Head explains why a machine does not get through the head of its local network.
func Head(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, head.ErrTicket):
		return terminal.WithExit(&terminal.Problem{Code: "TICKET_INVALID", What: "--head names no ticket",
			Why: err.Error(), Fix: "give the file that starling fleet head wrote for this machine, or its whole line"},
			terminal.ExitUsage)
	}
	return terminal.WithExit(&terminal.Problem{Code: "HEAD_UNREACHABLE", What: "the head of the local network lets this " +
		"machine not through", Why: err.Error(), Fix: "check that starling fleet head runs at the address of the ticket, " +
		"and that its folder still has this ticket", Retry: true}, terminal.ExitUnreachable)
}
