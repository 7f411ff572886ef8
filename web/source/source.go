// Package source declares what the server reads: runs, a network, the queue that starts jobs, and the files and models
// of fine-tuning. It has interfaces and the History of a run, and no implementation: those are in node/, over a folder
// of runs, a network, or a process that trains. A source reports failure.ErrNotFound for unknown names.
package source

import (
	"context"
	"io"

	"github.com/starling-network/starling/client/api"
)

// Runs is where runs are known: a folder of them, or a network. Its methods are called concurrently, often, and are
// expected to answer from memory.
type Runs interface {
	// List returns all runs, the latest first.
	List(ctx context.Context) ([]api.Job, error)
	// History of a run, or failure.ErrNotFound.
	History(ctx context.Context, id string) (*History, error)
	// Log returns at most limit bytes of whole lines of a run's log from an offset; a negative offset counts from the
	// end.
	Log(ctx context.Context, id string, from int64, limit int) (api.Log, error)
	// Files of a run: those of the model that it left, none while it is not over, then others.
	Files(ctx context.Context, id string) ([]api.File, error)
	// Open opens one of these files.
	Open(ctx context.Context, id, name string) (io.ReadSeekCloser, api.File, error)
}

// History is what is known of a run at one moment. It is never changed: readers share it.
type History struct {
	Version  uint64 // another with every change
	Job      api.Job
	Metrics  []api.Metric
	Lineage  []api.Checkpoint
	Receipts []api.Receipt
	Disputes []api.Dispute
	Samples  []api.Sample
	Links    []api.Link        // of members, as far as it is known who fetched from whom
	Pipeline *api.Pipeline     // nil: its model is not cut, or its folder does not say how
	Roles    map[string]string // of members by identifier, as far as they are known without receipts
}

// Network is a chain, as one of its validators sees it.
type Network interface {
	Overview(ctx context.Context) (api.Network, error)
	Account(ctx context.Context, address string) (api.Account, error)
	// Blocks returns at most limit blocks below a height, the latest first, and below which height more are asked for,
	// 0 if there are none; before 0 means from the latest on. Of busy ones, which have transactions, a page may be
	// empty and not the last.
	Blocks(ctx context.Context, before int64, limit int, busy bool) (list []api.Block, next int64, err error)
	// Tx is a transaction by its hash, in the block at a height, or, for height 0, in one of the latest.
	Tx(ctx context.Context, hash string, height int64) (api.Tx, error)
}

// Launcher starts jobs.
type Launcher interface {
	Plan(ctx context.Context, spec api.Spec) (api.Plan, error)
	// Submit returns the run of a job, which need not have begun; the same key, if it is not empty, gives the same run,
	// and resumes it if it stopped.
	Submit(ctx context.Context, key string, s api.Submission) (id string, err error)
	// Cancel stops a run, or fails with failure.ErrNotFound. One that has stopped may be cancelled again.
	Cancel(ctx context.Context, id string) error
	// Pause stops a run, or fails with failure.ErrNotFound. It continues when it is submitted again.
	Pause(ctx context.Context, id string) error
}

// Files keeps files of examples that models are tuned with.
type Files interface {
	// List returns all files, the latest first.
	List() ([]api.FileObject, error)
	// Keep reads a file to its end and keeps it; the error wraps openai.ErrExamples where it is no file of examples.
	Keep(name string, r io.Reader) (api.FileObject, error)
	// Open opens a file, or fails with failure.ErrNotFound.
	Open(id string) (io.ReadSeekCloser, api.FileObject, error)
	// Remove removes a file, or fails with failure.ErrNotFound.
	Remove(id string) error
}

// Tuner writes the jobs that tune models.
type Tuner interface {
	// Job returns the job that a request asks for, or a *failure.Error if the request is to blame.
	Job(r api.FineTuningRequest) (api.Spec, error)
	// Request returns what a run was asked for, with all that it left open, or fails with failure.ErrNotFound if it
	// tunes nothing.
	Request(run string) (api.FineTuningRequest, error)
	// Remove removes the weights of a model that a job tuned, and keeps the records of the job, or fails with
	// failure.ErrNotFound.
	Remove(model string) error
}
