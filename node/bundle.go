package node

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run"
)

// bundle is the blob that an order names: the work specification, and where to find what it names by digest.
type bundle struct {
	Spec     []byte   `cbor:"1,keyasint"`
	Program  string   `cbor:"2,keyasint"` // CIDs
	Manifest string   `cbor:"3,keyasint"`
	Shards   []string `cbor:"4,keyasint"`
}

type getter func(ctx context.Context, cid string) ([]byte, error)

// publish stores everything that a job ships, and returns the CID of its bundle and the name of its first checkpoint.
func (b *Blueprint) publish(ctx context.Context, store blob.Store, r *runFile) (cid string, genesis run.Checkpoint, err error) {
	put := func(data []byte) string {
		id, e := store.Put(ctx, data)
		if e != nil && err == nil {
			err = e
		}
		return id.String()
	}
	out := bundle{Spec: b.Spec.Encode(), Program: put(b.Step.Encode()), Manifest: put(b.Manifest.Encode())}
	for _, s := range b.Shards {
		out.Shards = append(out.Shards, put(s))
	}
	cid = put(canon.MustMarshal(out))
	r.Blobs.Spec, r.Blobs.Program, r.Blobs.Manifest, r.Blobs.Shards = put(out.Spec), out.Program, out.Manifest, out.Shards
	if err != nil {
		return "", genesis, err
	}
	genesis, err = saveCheckpoint(ctx, store, b.JobID(), b.Genesis)
	r.Blobs.Genesis = genesis.CID
	return cid, genesis, err
}

// openBundle fetches what a job ships and checks it against the digest on chain.
func openBundle(ctx context.Context, terms run.Terms, threads int, get getter) (*train.Task, error) {
	raw, err := get(ctx, terms.SpecCID)
	if err != nil {
		return nil, err
	}
	var b bundle
	if err := canon.Unmarshal(raw, &b); err != nil {
		return nil, fmt.Errorf("node: the job's bundle: %w", err)
	}
	program, err := get(ctx, b.Program)
	if err != nil {
		return nil, err
	}
	manifest, err := get(ctx, b.Manifest)
	if err != nil {
		return nil, err
	}
	shard := func(i int) ([]byte, error) {
		if i >= len(b.Shards) {
			return nil, fmt.Errorf("node: the job's bundle names %d shards, its manifest more", len(b.Shards))
		}
		return get(ctx, b.Shards[i])
	}
	task, err := newTask(b.Spec, program, manifest, shard, terms.Spec, threads)
	if err == nil && task.Spec.Genesis != terms.Genesis.Root {
		err = fmt.Errorf("node: the job starts from %s, the chain says %s", task.Spec.Genesis.Short(), terms.Genesis.Root.Short())
	}
	return task, err
}
