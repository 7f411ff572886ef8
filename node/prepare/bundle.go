package prepare

import (
	"context"
	"errors"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role/engine"
)

// Publish stores everything that a job ships, and returns the CID of its bundle and the name of its first checkpoint.
// The work specification is in the bundle, and for who looks for it by itself a blob of its own, too.
func (b *Blueprint) Publish(ctx context.Context, store blob.Store,
	r *rundir.RunFile) (cid string, genesis run.Checkpoint, err error) {
	task := &train.Task{Spec: b.Spec, Step: b.Step, Corpus: b.Corpus, Frozen: b.Frozen}
	executor := map[string]string{job.Torch: engine.Torch}[b.Job.Executor]
	cid, bundle, genesis, err := engine.Ship(ctx, store, b.JobID(), task, b.Genesis, executor)
	spec, specErr := store.Put(ctx, bundle.Spec)
	k := &r.Blobs
	k.Spec, k.Program, k.Manifest, k.Shards, k.Frozen, k.Genesis = spec.String(), bundle.Program, bundle.Manifest,
		bundle.Shards, bundle.Frozen, genesis.CID
	return cid, genesis, errors.Join(err, specErr)
}
