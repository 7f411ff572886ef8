// Package refusal words errors of jobs for clients: as answers to requests, and as reasons of jobs that are over. It
// says which of them no other try changes, and tries nothing.
package refusal

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/web/failure"
)

// Words are for clients, without the folders of this machine: Root, of the runs, and Data, of the data that jobs name.
// Both are absolute.
type Words struct{ Root, Data string }

// Refusal turns an error about a job into an answer.
func (l Words) Refusal(err error) error {
	var wrong *problem.ErrorList
	if !errors.As(err, &wrong) {
		why := l.Reason(err)
		return &failure.Error{Status: http.StatusUnprocessableEntity, Code: why.Code, Detail: why.Text, Fix: why.Next}
	}
	f := &failure.Error{Status: http.StatusUnprocessableEntity, Code: "JOB_INVALID", Detail: "the job file has errors",
		Fix: "see problems, which has their places"}
	if len(wrong.Errors) == 1 {
		f.Detail = "the job file has an error"
	}
	for _, e := range wrong.Errors {
		code, place, what, why, fix := e.Explain()
		f.Problems = append(f.Problems, api.ProblemPlace{Code: code, Place: l.redactPaths(place), What: l.redactPaths(what),
			Why: l.redactPaths(why), Fix: l.redactPaths(fix)})
	}
	return f
}

// Reason says why a job could not be trained.
func (l Words) Reason(err error) api.Reason {
	var wrong *problem.ErrorList
	var halted *consumer.HaltedError
	var ended *consumer.EndedError
	var room *member.ShortageError
	var budget *demand.BudgetError
	var diverged *train.DivergedError
	r := api.Reason{Code: "TRAINING_FAILED", Text: l.redactPaths(err.Error()), Next: "see the log of the job"}
	switch {
	case errors.As(err, &wrong):
		r.Code, r.Next = wrong.Errors[0].Code, l.redactPaths(wrong.Errors[0].Fix)
	case errors.As(err, &halted):
		r.Code, r.Next = CodeHalted, halted.Fix()
	case errors.As(err, &ended):
		r.Code, r.Next = CodeEnded, ended.Fix()
	case errors.As(err, &diverged):
		r.Code, r.Next = CodeDiverged, "lower training.learning_rate or strategy.outer_optimizer.lr, or warm up longer"
	case errors.As(err, &room):
		r.Code, r.Next = "STORE_TOO_SMALL", "make room on the disk of the server"
	case errors.As(err, &budget):
		r.Code, r.Next = "BUDGET_TOO_SMALL", budget.Fix()
	case errors.Is(err, prepare.ErrMemory):
		r.Code, r.Next = "MEMORY_TOO_SMALL", "train a smaller model, or with fewer workers"
	case errors.Is(err, plan.ErrPlanStale):
		r.Code, r.Next = "PLAN_STALE", "plan it again"
	case errors.Is(err, rundir.ErrOtherJob):
		r.Code, r.Next = "DATA_CHANGED", "bring the data back that the run began with, or submit the job with another "+
			"Idempotency-Key"
	case errors.Is(err, consumer.ErrNoSecret):
		r.Code, r.Next = "DATA_KEY_MISSING", "bring "+rundir.FileDataKey+" of the job back from a copy of its folder"
	case errors.Is(err, rundir.ErrInUse):
		r.Code, r.Next = "JOB_ELSEWHERE", "wait for the process that trains it"
	default:
		if refused, ok := errors.AsType[*transaction.Error](err); ok {
			r.Code, r.Next = "ORDER_REFUSED", refused.Fix
		}
	}
	return r
}

// Codes of reasons why a run is over without all of its rounds.
const (
	CodeHalted    = "RUN_HALTED"
	CodeDiverged  = "RUN_DIVERGED"
	CodeEnded     = "ORDER_ENDED"
	CodeCancelled = "cancelled"
)

// redactPaths takes the folders of this machine out of a text that goes to others.
func (l Words) redactPaths(text string) string {
	text = strings.ReplaceAll(text, l.Data+string(filepath.Separator), "")
	return strings.ReplaceAll(strings.ReplaceAll(text, l.Data, "the server's folder of data"),
		l.Root+string(filepath.Separator), "")
}
