package cause

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/notify"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/provider/parting"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/verify"
)

// Measurement gives the errors of a measurement their exit codes.
func Measurement(cmd *cobra.Command, err error) error {
	switch {
	case errors.Is(err, benchmark.ErrOption):
		return usage.Error(cmd, err)
	case errors.Is(err, benchmark.ErrFile):
		return terminal.WithExit(&terminal.Problem{
			Code: "FILE_UNUSABLE", What: err.Error(), Fix: "see `" + cmd.CommandPath() + " --help` for the files it takes",
		}, terminal.ExitNotFound)
	}
	return terminal.IfInterrupted(cmd.Context(), err, cmd.CommandPath())
}

// Train gives the errors of a run their exit codes.
func Train(err error) error {
	var wrong *problem.ErrorList
	var halted *consumer.HaltedError
	var ended *consumer.EndedError
	var room *member.ShortageError
	var budget *demand.BudgetError
	var diverged *train.DivergedError
	switch {
	case errors.As(err, &wrong):
		return terminal.WithExit(err, terminal.ExitUsage)
	case errors.As(err, &halted):
		return terminal.WithExit(&terminal.Problem{Code: "RUN_HALTED", What: "the run cannot continue", Why: halted.Why,
			Fix: halted.Fix()}, halted.ExitCode())
	case errors.As(err, &ended):
		return terminal.WithExit(&terminal.Problem{Code: "ORDER_ENDED", What: ended.Error(), Fix: ended.Fix()},
			ended.ExitCode())
	case errors.As(err, &diverged):
		return terminal.WithExit(&terminal.Problem{
			Code: "RUN_DIVERGED", What: diverged.Error(),
			Fix: "lower training.learning_rate or strategy.outer_optimizer.lr, or warm up longer; the model and the receipts " +
				"of the rounds before are in the output folder",
		}, terminal.ExitJobFailed)
	case errors.As(err, &budget):
		return terminal.WithExit(&terminal.Problem{Code: "BUDGET_TOO_SMALL", What: "the budget cannot pay for the job",
			Why: budget.Error(), Fix: budget.Fix()}, terminal.ExitFunds)
	case errors.As(err, &room):
		return terminal.WithExit(&terminal.Problem{
			Code: "STORE_TOO_SMALL", What: "the disk is too small for the job", Why: err.Error(),
			Fix: "make room on the disk, or give an output folder on a larger one with --dir",
		}, terminal.ExitFailure)
	case errors.Is(err, plan.ErrPlanStale):
		return terminal.WithExit(&terminal.Problem{Code: "PLAN_STALE", What: err.Error(),
			Fix: "plan it again with --dry-run"}, terminal.ExitConflict)
	case errors.Is(err, rundir.ErrOtherJob):
		return terminal.WithExit(&terminal.Problem{Code: "OUTPUT_CONFLICT", What: err.Error(),
			Fix: "continue with the job file, the data and the --set flags that it began with, which job.yaml and run.json in " +
				"the folder tell; or give another folder with --dir"}, terminal.ExitConflict)
	case errors.Is(err, consumer.ErrNoSecret):
		return terminal.WithExit(&terminal.Problem{Code: "DATA_KEY_MISSING", What: err.Error(),
			Fix: "bring " + rundir.FileDataKey + " back from a copy of the folder: its keys alone open the shards that " +
				"members have; or begin another run with --dir"}, terminal.ExitConflict)
	case errors.Is(err, notify.ErrSecret):
		return terminal.WithExit(&terminal.Problem{Code: "WEBHOOK_SECRET", What: err.Error(),
			Fix: "set " + notify.SecretVariable + " to such a secret, or unset it: then events are not signed"},
			terminal.ExitAuth)
	case errors.Is(err, prepare.ErrMemory):
		return terminal.WithExit(&terminal.Problem{Code: "MEMORY_TOO_SMALL",
			What: "the job does not fit into the memory of this machine", Why: err.Error(),
			Fix: "train a smaller model, fewer or shorter sequences of a step, or with fewer workers; or on a network " +
				"(--network)"}, terminal.ExitNoCapacity)
	case errors.Is(err, kernel.ErrVersion):
		return numericsUnknown(err)
	case errors.Is(err, rundir.ErrInUse):
		return terminal.WithExit(&terminal.Problem{Code: "OUTPUT_CONFLICT", What: err.Error(),
			Fix: "give another folder with --dir"}, terminal.ExitConflict)
	}
	return err
}

// Verification gives the errors of a verification their codes.
func Verification(err error) error {
	var differs *verify.MismatchError
	var lacking *verify.IncompleteError
	var wrong *problem.ErrorList
	switch {
	case errors.As(err, &differs):
		return terminal.WithExit(&terminal.Problem{
			Code: "VERIFICATION_FAILED", What: "the run is not what its job and data determine", Why: differs.Error(),
			Fix: "if the data's files have changed since, try --shipped-data; otherwise it is not the model of this job",
		}, terminal.ExitVerification)
	case errors.As(err, &lacking):
		return terminal.WithExit(&terminal.Problem{
			Code: "RUN_INCOMPLETE", What: "the run cannot be verified: a file of its folder is missing", Why: lacking.Error(),
			Fix: "restore the file from a copy of the folder; what is there was not found to be wrong",
		}, terminal.ExitVerification)
	case errors.Is(err, rundir.ErrNotARun):
		return terminal.WithExit(&terminal.Problem{Code: "NOT_A_RUN", What: err.Error(),
			Fix: "give the output folder of `starling train`"}, terminal.ExitNotFound)
	case errors.Is(err, kernel.ErrVersion):
		return numericsUnknown(err)
	case errors.As(err, &wrong):
		return terminal.WithExit(err, terminal.ExitVerification)
	}
	return Explain(err)
}

// Worker explains why a worker or verifier cannot continue.
func Worker(err error) error {
	if u, ok := errors.AsType[*parting.Unsettled](err); ok {
		return terminal.WithExit(&terminal.Problem{Code: "UNSETTLED", What: "the process ends before its work is settled",
			Why: u.Why + "; " + u.Left(), Retry: true,
			Fix: "when the network can be reached, start it again with the same flags: it settles what is open, and drains " +
				"as before; or leave for good with starling worker retire. --drain-timeout 0 waits for the network",
		}, terminal.ExitUnsettled)
	}
	if err = Explain(err); err == nil || terminal.Explained(err) {
		return err
	}
	return terminal.WithExit(&terminal.Problem{
		Code: "WORKER_FAILED", What: "the worker cannot continue", Why: err.Error(),
		Fix: "check --network and the account's coins; worker.log in its folder says more",
	}, terminal.ExitFailure)
}

// numericsUnknown is the error of a job in a version of the numerics that this build does not compute.
func numericsUnknown(err error) error {
	return terminal.WithExit(&terminal.Problem{Code: "NUMERICS_UNKNOWN", What: "the job is in a version of the numerics " +
		"that this program does not compute", Why: err.Error(), Fix: "install a newer starling"}, terminal.ExitUsage)
}
