package node

import (
	"context"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role/engine"
)

// publish stores everything that a job ships, and returns the CID of its bundle and the name of its first checkpoint.
func (b *Blueprint) publish(ctx context.Context, store blob.Store, r *runFile) (cid string, genesis run.Checkpoint, err error) {
	put := func(data []byte) string {
		id, e := store.Put(ctx, data)
		if e != nil && err == nil {
			err = e
		}
		return id.String()
	}
	out := engine.Bundle{Spec: b.Spec.Encode(), Program: put(b.Step.Encode()), Manifest: put(b.Manifest.Encode())}
	for _, s := range b.Shards {
		out.Shards = append(out.Shards, put(s))
	}
	if len(b.Frozen) > 0 {
		frozen, e := engine.SaveFrozen(ctx, store, b.JobID(), b.Spec.Frozen, train.Frozen(b.Step), b.Frozen)
		if e != nil {
			return "", genesis, e
		}
		out.Frozen, r.Blobs.Frozen = frozen, frozen
	}
	cid = put(out.Encode())
	r.Blobs.Spec, r.Blobs.Program, r.Blobs.Manifest, r.Blobs.Shards = put(out.Spec), out.Program, out.Manifest, out.Shards
	if err != nil {
		return "", genesis, err
	}
	genesis, err = engine.SaveCheckpoint(ctx, store, b.JobID(), b.Genesis)
	r.Blobs.Genesis = genesis.CID
	return cid, genesis, err
}
