// Package cause explains the errors that packages below the command line return: what happened, why, what to do about
// it, a stable code, and the exit code. It makes no errors of its own.
package cause

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os/exec"
	"strings"

	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/cmd/starling/passphrase"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/simulate"
	"github.com/starling-network/starling/node/uplink"
	"github.com/starling-network/starling/web/failure"
)

// Explain explains an error that a command returns as a package below gave it: its code, what to do, and the exit code.
// It is the one place for what can happen to every command, such as a network that does not answer. An error that
// explains itself, or that nothing is known of, stays as it is.
func Explain(err error) error {
	if err == nil || terminal.Explained(err) {
		return err
	}
	for _, known := range []func(error) error{passphrase.Explain, Network, Home, Train,
		networkCause, machineCause} {
		if explained := known(err); terminal.Explained(explained) {
			return explained
		}
	}
	return err
}

// networkCause explains what can happen to every question to a network, and to every transaction.
func networkCause(err error) error {
	if refused, ok := errors.AsType[*transaction.Error](err); ok {
		return refusal(refused)
	}
	p, exit := &terminal.Problem{Why: err.Error()}, terminal.ExitUnreachable
	gone, unreachable := errors.AsType[*endpoint.Unreachable](err)
	lost, asked := errors.AsType[*url.Error](err)
	switch {
	case errors.Is(err, keystore.ErrNoBlock):
		p.Code, p.What, p.Fix, exit = "TIMED_OUT", "the network makes no blocks",
			"see validator.log and out.log in the folders of the validators", terminal.ExitTimeout
	case unreachable && !asked: // something else answers there
		p.Code, p.What, p.Why = "NETWORK_UNREACHABLE", gone.Network+" does not answer as a validator", gone.Err.Error()
		p.Fix = "give its HTTP interface (rpc in network.json, such as http://127.0.0.1:26601), and neither its gRPC nor " +
			"its REST port, nor that for other validators"
	case unreachable:
		p.Code, p.What, p.Fix = "NETWORK_UNREACHABLE", "no answer from "+gone.Network,
			"check that a validator runs there: starling doctor --network "+gone.Network
		p.Why = gone.Err.Error()
	case errors.Is(err, endpoint.ErrAddress):
		p.Code, p.What, p.Fix, exit = "USAGE", "a network is named wrong",
			"give --network the HTTP interface of a validator, such as http://127.0.0.1:26601", terminal.ExitUsage
	case errors.Is(err, client.ErrNoAccount):
		p.Code, p.What, p.Why, exit = "ACCOUNT_NOT_FOUND", err.Error(), "", terminal.ExitNotFound
		p.Fix = "send it coins with starling account send; a validator that is behind the others may not know of them yet"
	case errors.Is(err, client.ErrNotFound):
		p.Code, p.What, p.Fix, exit = "NOT_FOUND", "the network does not have it",
			"check the name; starling network status shows what there is", terminal.ExitNotFound
	case errors.Is(err, uplink.ErrSilent):
		p.Code, p.What, p.Fix, exit = "TIMED_OUT", "the network makes no blocks, or cannot be reached any more",
			"what was sent may still come into a block: see starling account history, and give the command again once "+
				"starling network status shows new blocks", terminal.ExitTimeout
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, client.ErrLost):
		p.Code, p.What, p.Fix, exit = "TIMED_OUT", "waiting took too long",
			"try again; starling network status shows whether the network makes blocks", terminal.ExitTimeout
	case asked:
		p.Code, p.What, p.Fix = "NETWORK_UNREACHABLE", "no answer from "+lost.URL,
			"check that it runs and that this machine reaches it, and try again"
	case errors.Is(err, client.ErrClosed):
		p.Code, p.What, p.Fix = "NETWORK_UNREACHABLE", "the connection to the validator ended",
			"check that it runs: starling doctor --network URL"
	default:
		return err
	}
	return terminal.WithExit(p, exit)
}

// refusals are the exit codes of refusals of the chain; those of other refusals are ExitFailure.
var refusals = map[error]int{
	market.ErrFunds: terminal.ExitFunds, market.ErrNoOrder: terminal.ExitNotFound, market.ErrTaken: terminal.ExitConflict,
	market.ErrState: terminal.ExitConflict, market.ErrNotYours: terminal.ExitAuth,
}

// refusal explains a transaction that the chain refused. Its code is that of the chain, such as MARKET_5.
func refusal(e *transaction.Error) error {
	p := &terminal.Problem{Code: fmt.Sprintf("%s_%d", strings.ToUpper(e.Space), e.Code), What: "the chain refused it",
		Why: e.Text, Fix: terminal.Clause(e.Fix)}
	exit, ok := refusals[e.Rule]
	if !ok {
		exit = terminal.ExitFailure
	}
	if e.Space == sdkerrors.RootCodespace {
		switch e.Code {
		case sdkerrors.ErrInsufficientFunds.ABCICode():
			exit = terminal.ExitFunds
		case sdkerrors.ErrUnauthorized.ABCICode():
			exit = terminal.ExitAuth
		case sdkerrors.ErrMempoolIsFull.ABCICode():
			p.Retry = true
		}
	}
	return terminal.WithExit(p, exit)
}

// machineCause explains what the system refuses: files, ports and programs.
func machineCause(err error) error {
	p, exit := &terminal.Problem{Why: err.Error()}, terminal.ExitFailure
	file, onFile := errors.AsType[*fs.PathError](err)
	port, onPort := errors.AsType[*net.OpError](err)
	program, onProgram := errors.AsType[*exec.Error](err)
	known, coded := errors.AsType[*failure.Error](err)
	switch {
	case coded:
		p.Code, p.What, p.Why, p.Fix = known.Code, known.Detail, "", known.Fix
	case errors.Is(err, simulate.ErrNoParty):
		p.Code, p.What, p.Why, p.Fix, exit = "USAGE", err.Error(), "", "name one of the parties of the job",
			terminal.ExitUsage
	case errors.Is(err, simulate.ErrSurrogate):
		p.Code, p.What, p.Fix, exit = "JOB_TOO_LARGE", "the job cannot be played with --modelled",
			"lower strategy.sync_steps or training.global_batch_size", terminal.ExitUsage
	case errors.Is(err, peer.ErrListen):
		p.Code, p.What, p.Fix, exit = "USAGE", "--listen names no address to listen on",
			"give a multiaddr, such as /ip4/0.0.0.0/tcp/4001", terminal.ExitUsage
	case onFile:
		return terminal.FileProblem(file)
	case onPort && port.Op == "listen":
		p.Code, p.What, p.Fix = "LISTEN_FAILED", "cannot listen on "+port.Addr.String(),
			"give another address, or end the process that has it"
	case onProgram:
		p.Code, p.What, p.Fix = "PROGRAM_FAILED", "cannot start "+program.Name,
			"see whether it is installed and this user may run it"
	default:
		return err
	}
	return terminal.WithExit(p, exit)
}
