package prepare

import (
	"context"
	"errors"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
)

// TaskOf is the task of which the units of a job are computed with a compiled step; nil: nothing is computed.
func TaskOf(b *CompiledJob, exec *cpu.Exec) *train.Task {
	return &train.Task{Spec: b.Spec, Step: b.Step, Exec: exec, Corpus: b.Corpus, Frozen: b.Frozen,
		FrozenRoots: b.FrozenRoots}
}

// Publish stores everything that a job ships, and returns the CID of its bundle and the name of its first checkpoint.
// The work specification is in the bundle, and also a blob of its own, for clients that fetch it alone.
func (b *CompiledJob) Publish(ctx context.Context, store blob.Store,
	r *rundir.RunFile) (cid string, genesis terms.Checkpoint, err error) {
	task := TaskOf(b, nil)
	executor := map[string]string{spec.Torch: bundle.Torch}[b.Job.Executor]
	cid, named, genesis, err := bundle.Ship(ctx, store, b.JobID(), task, b.Genesis, executor, b.Seal)
	spec, specErr := store.Put(ctx, named.Spec)
	k := &r.Blobs
	k.Spec, k.Program, k.Manifest, k.Shards, k.Frozen, k.Genesis = spec.String(), named.Program, named.Manifest,
		named.Shards, named.Frozen, genesis.CID
	return cid, genesis, errors.Join(err, specErr)
}
