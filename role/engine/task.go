package engine

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/run"
)

// ShardTokens is how many tokens one shard of a job's data has, but for its last.
const ShardTokens = 1 << 20

// Bundle is the blob that an order names: the work specification, and where to find what it names by digest.
type Bundle struct {
	Spec     []byte   `cbor:"1,keyasint"`
	Program  string   `cbor:"2,keyasint"` // CIDs
	Manifest string   `cbor:"3,keyasint"`
	Shards   []string `cbor:"4,keyasint"`
	Frozen   string   `cbor:"5,keyasint,omitempty"` // as saveFrozen stores them
}

// Encode returns the bytes of the blob.
func (b Bundle) Encode() []byte { return canon.MustMarshal(b) }

// Ship stores all that a job ships, its first checkpoint included, and returns the CID of its bundle, with what it names, and
// the name of the checkpoint. Of the task it reads the specification, the step, the corpus and the frozen tensors.
func Ship(ctx context.Context, store blob.Store, jobID string, t *train.Task, genesis *train.Checkpoint) (cid string, b Bundle, first run.Checkpoint, err error) {
	put := func(data []byte) string {
		id, e := store.Put(ctx, data)
		if e != nil && err == nil {
			err = e
		}
		return id.String()
	}
	b = Bundle{Spec: t.Spec.Encode(), Program: put(t.Step.Encode()), Manifest: put(t.Corpus.Manifest(ShardTokens).Encode())}
	for _, s := range t.Corpus.Shards(ShardTokens) {
		b.Shards = append(b.Shards, put(s))
	}
	if len(t.Frozen) > 0 && err == nil {
		b.Frozen, err = saveFrozen(ctx, store, jobID, t.Spec.Frozen, train.Frozen(t.Step), t.Frozen)
	}
	cid = put(b.Encode())
	if err == nil {
		first, err = SaveCheckpoint(ctx, store, jobID, genesis)
	}
	return cid, b, first, err
}

// Open fetches what a job ships and makes a task of it. Strangers wrote all of it: nothing is taken that the terms, which
// the chain has, do not bind by a digest. get returns the bytes of a CID.
func Open(ctx context.Context, terms run.Terms, threads int, get func(ctx context.Context, cid string) ([]byte, error)) (*train.Task, error) {
	raw, err := get(ctx, terms.SpecCID)
	if err != nil {
		return nil, err
	}
	var b Bundle
	if err := canon.Unmarshal(raw, &b); err != nil {
		return nil, fmt.Errorf("engine: the job's bundle: %w", err)
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
			return nil, fmt.Errorf("engine: the job's bundle names %d shards, its manifest more", len(b.Shards))
		}
		return get(ctx, b.Shards[i])
	}
	task, err := newTask(b.Spec, program, manifest, shard, terms.Spec, threads)
	if err == nil {
		task.Frozen, err = loadFrozen(ctx, b.Frozen, task, get)
	}
	if err == nil && task.Spec.Genesis != terms.Genesis.Root {
		err = fmt.Errorf("engine: the job starts from %s, the chain says %s", task.Spec.Genesis.Short(), terms.Genesis.Root.Short())
	}
	return task, err
}

func newTask(specBytes, programBytes, manifestBytes []byte, shards func(i int) ([]byte, error), want canon.Digest, threads int) (*train.Task, error) {
	spec, err := train.DecodeSpec(specBytes)
	if err != nil {
		return nil, err
	}
	if d := spec.Digest(); d != want {
		return nil, fmt.Errorf("engine: the work specification is %s, the chain says %s", d.Short(), want.Short())
	}
	if err := outer.Check(spec.Exchange); err != nil {
		return nil, err
	}
	p, err := program.Decode(programBytes, program.DefaultLimits)
	if err != nil {
		return nil, err
	}
	if err := train.CheckProgram(spec, p); err != nil {
		return nil, err
	}
	corpus, err := loadCorpus(spec, manifestBytes, shards)
	if err != nil {
		return nil, err
	}
	exec, err := program.Compile(p, threads)
	if err != nil {
		return nil, err
	}
	return &train.Task{Spec: spec, Step: p, Exec: exec, Corpus: corpus}, nil
}

// saveFrozen stores the tensors that a job reads and does not train, with their names in the step and their root
// (train.FrozenRoot), and returns the CID.
func saveFrozen(ctx context.Context, store blob.Store, jobID string, root canon.Digest, names []string, frozen []*tensor.Tensor) (string, error) {
	tensors, inputs := map[string]*tensor.Tensor{}, make([]string, len(names))
	for i, n := range names {
		inputs[i] = train.Param + n
		tensors[inputs[i]] = frozen[i]
	}
	m := checkpoint.Manifest{Job: jobID, StateRoot: root}
	id, err := checkpoint.Save(ctx, store, m, inputs, tensors)
	return id.String(), err
}

// loadFrozen fetches the frozen tensors of a task, and verifies their root and their shapes.
func loadFrozen(ctx context.Context, cid string, t *train.Task, get func(ctx context.Context, cid string) ([]byte, error)) ([]*tensor.Tensor, error) {
	names := train.Frozen(t.Step)
	if len(names) == 0 {
		return nil, nil
	}
	id, err := blob.Parse(cid)
	if err != nil {
		return nil, err
	}
	_, tensors, err := checkpoint.Load(ctx, func(ctx context.Context, id blob.CID) ([]byte, error) { return get(ctx, id.String()) }, id)
	if err != nil {
		return nil, err
	}
	shapes := t.Step.InputShapes()
	frozen := make([]*tensor.Tensor, len(names))
	for i, n := range names {
		in := train.Param + n
		if frozen[i] = tensors[in]; frozen[i] == nil || !frozen[i].Shape.Equal(shapes[in]) {
			return nil, fmt.Errorf("engine: the blob %s has no tensor %q of shape %v", cid, in, shapes[in])
		}
	}
	if train.FrozenRoot(train.Roots(frozen)) != t.Spec.Frozen {
		return nil, fmt.Errorf("engine: the tensors of the blob %s are not those that the specification freezes", cid)
	}
	return frozen, nil
}

func loadCorpus(spec *train.Spec, manifestBytes []byte, shards func(i int) ([]byte, error)) (*data.Corpus, error) {
	m, err := data.DecodeManifest(manifestBytes)
	if err != nil {
		return nil, err
	}
	if m.Digest() != spec.Data {
		return nil, fmt.Errorf("engine: the corpus manifest is not the one of the specification")
	}
	return Assemble(m, shards)
}

// Assemble puts a shipped corpus together. Nothing that the manifest does not bind gets in.
func Assemble(m data.Manifest, shards func(i int) ([]byte, error)) (*data.Corpus, error) {
	parts := make([][]byte, len(m.Shards))
	for i := range parts {
		var err error
		if parts[i], err = shards(i); err != nil {
			return nil, err
		}
	}
	return data.Assemble(m, parts)
}
