package refusal

import (
	"errors"
	"slices"

	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	chainmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/market"
)

// ErrCancelled ends a job that is not wanted any more.
var ErrCancelled = errors.New("server: the job is not wanted any more")

// Final reports whether an error is one that no other try changes.
func Final(err error) bool {
	if l := (*problem.ErrorList)(nil); errors.As(err, &l) {
		return true
	}
	if e, ok := errors.AsType[*transaction.Error](err); ok && !Unfunded(err) {
		// prepared again, a job has the version of the numerics that is in force
		return e.Space != sdkerrors.RootCodespace && !errors.Is(err, market.ErrNumerics)
	}
	return isA[*consumer.HaltedError](err) || isA[*consumer.EndedError](err) || isA[*train.DivergedError](err) ||
		isA[*demand.BudgetError](err) || isA[*member.ShortageError](err) ||
		slices.ContainsFunc([]error{ErrCancelled, prepare.ErrMemory, plan.ErrPlanStale, rundir.ErrOtherJob},
			func(known error) bool { return errors.Is(err, known) })
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Unfunded reports whether the network refused a transaction because the account cannot pay for it.
func Unfunded(err error) bool {
	e, ok := errors.AsType[*transaction.Error](err)
	return errors.Is(err, chainmarket.ErrFunds) || errors.Is(err, client.ErrNoAccount) ||
		ok && e.Space == sdkerrors.RootCodespace && e.Code == sdkerrors.ErrInsufficientFunds.ABCICode()
}
