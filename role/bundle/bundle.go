// Package bundle is a job as blobs: how what its order names (the work specification, the program, the data, frozen
// tensors) and its checkpoints are stored, and read again from strangers with every digest checked; and how much memory
// and disk taking part in it needs.
//
// It computes nothing of the job; package engine does.
package bundle

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/compute/admit"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/hold"
)

// A member fetches the shards of a job's data as its units read them: ShardsAtOnce at a time, and of those that it has
// read it holds ShardMemory bytes, besides the tokens of the next steps of its units.
const (
	ShardsAtOnce = 4
	ShardMemory  = 32 << 20
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
	// what workers are asked to take the steps with: Torch, or "" for the kernels
	Executor string `cbor:"6,keyasint,omitempty"`
	// cipher of the shards, each of which has a key of its own that the consumer releases: AES256GCM, or "" for none
	Cipher string `cbor:"7,keyasint,omitempty"`
}

// AES256GCM is the cipher of encrypted shards (NIST SP 800-38D): a shard, and after it a tag of 16 bytes.
const AES256GCM = "aes-256-gcm"

// CutToSeal makes the shards of a corpus smaller, before they are encrypted: the key of a shard shows the whole shard
// to a member whose unit reads one window of it. There are at most maxSealed shards, unless each has ShardTokens.
func CutToSeal(c *data.Corpus) {
	n := 1 << 14
	for (c.Train.Len()+c.Val.Len())/n > maxSealed && n < ShardTokens {
		n *= 2
	}
	c.Cut(n)
}

// maxSealed is the most encrypted shards, as long as these are smaller than others.
const maxSealed = 1 << 15

// Torch is the executor that takes steps in PyTorch. Workers that have none use the kernels.
const Torch = "torch"

// Encode returns the bytes of the blob.
func (b Bundle) Encode() []byte { return canon.MustMarshal(b) }

// Seal returns shard i of a corpus, encrypted by AES256GCM.
type Seal func(i int, shard []byte) ([]byte, error)

// Ship stores all blobs of a job, its first checkpoint included, and returns the CID of its bundle, the bundle, and
// the name of the checkpoint. Of the task it reads the specification, the step, the corpus, which must be a whole one,
// and the frozen tensors. executor is that of the bundle; seal encrypts a shard, nil: none is encrypted.
func Ship(ctx context.Context, store blob.Store, jobID string, t *train.Task, genesis *train.Checkpoint,
	executor string, seal Seal) (cid string, b Bundle, first terms.Checkpoint, err error) {
	corpus, whole := t.Corpus.(*data.Corpus)
	if !whole {
		return "", b, first, errors.New("engine: only a whole corpus can be shipped")
	}
	put := func(data []byte) string {
		id, e := store.Put(ctx, data)
		if e != nil && err == nil {
			err = e
		}
		return id.String()
	}
	b = Bundle{Executor: executor, Spec: t.Spec.Encode(), Program: put(t.Step.Encode()),
		Manifest: put(corpus.Manifest(ShardTokens).Encode())}
	for i, s := range corpus.Shards(ShardTokens) {
		if seal != nil {
			b.Cipher = AES256GCM
			if s, err = seal(i, s); err != nil {
				return "", b, first, err
			}
		}
		b.Shards = append(b.Shards, put(s))
	}
	if len(t.Frozen) > 0 && err == nil {
		b.Frozen, err = saveFrozen(ctx, store, jobID, t)
	}
	cid = put(b.Encode())
	if err == nil {
		first, err = SaveCheckpoint(ctx, store, jobID, genesis)
	}
	return cid, b, first, err
}

// Job is the verified bundle, program and manifest of a job, without its data: enough to compute its requirements.
type Job struct {
	Bundle
	CID  string // of the bundle
	Spec *train.Spec
	Step *program.Program
	Data data.Manifest

	terms terms.Terms
	// bytes that stages send on a link in a step at most, and that one sends and receives in a unit
	link, values int64
}

// ErrTerms is returned for a job whose terms on the chain, by which it is paid, are not those of its work.
var ErrTerms = errors.New("engine: the terms are not those of the work")

// ErrUndecidable is returned for a job with disputes that might not be decided: its members could lose stake without
// fault.
var ErrUndecidable = errors.New("engine: a dispute about this job could not be decided")

// Getter returns the bytes of a CID, which are at most most: blob.ErrTooLarge if there are more, before they are read.
type Getter = func(ctx context.Context, cid string, most int64) ([]byte, error)

// maxBundle is how many bytes the blob that an order names may have, and the manifest of a corpus: enough for 10^11
// tokens.
const maxBundle = 16 << 20

// ReadJob fetches a job's bundle, program and manifest. Their author is not trusted: the terms, which the chain has,
// must bind all of it by digests.
func ReadJob(ctx context.Context, terms terms.Terms, get Getter) (*Job, error) {
	f, err := Fetch(ctx, terms, get)
	if err != nil {
		return nil, err
	}
	return f.Decode()
}

// Fetched is the bundle of a job, of which what it names was fetched and not yet checked.
type Fetched struct {
	job            Job
	step, manifest []byte
}

// Fetch gets what ReadJob reads.
func Fetch(ctx context.Context, terms terms.Terms, get Getter) (*Fetched, error) {
	raw, err := get(ctx, terms.SpecCID, maxBundle)
	if err != nil {
		return nil, err
	}
	f := &Fetched{job: Job{CID: terms.SpecCID, terms: terms}}
	if err := canon.Unmarshal(raw, &f.job.Bundle); err != nil {
		return nil, fmt.Errorf("engine: the job's bundle: %w", err)
	}
	if f.step, err = get(ctx, f.job.Program, program.DefaultLimits.MaxBytes); err != nil {
		return nil, err
	}
	if f.manifest, err = get(ctx, f.job.Manifest, maxBundle); err != nil {
		return nil, err
	}
	return f, nil
}

// Decode reads and checks what was fetched.
func (f *Fetched) Decode() (*Job, error) {
	j := f.job
	return &j, j.decode(f.step, f.manifest)
}

// decode reads and checks what the bundle names.
func (j *Job) decode(step, manifest []byte) (err error) {
	if j.Spec, err = train.DecodeSpec(j.Bundle.Spec); err != nil {
		return err
	}
	if d := j.Spec.Digest(); d != j.terms.Spec {
		return fmt.Errorf("engine: the work specification is %s, the chain says %s", d.Short(), j.terms.Spec.Short())
	}
	if err := outer.Check(j.Spec.Exchange); err != nil {
		return err
	}
	if j.Executor != "" && j.Executor != Torch {
		return fmt.Errorf("engine: the job asks for the executor %.40q, which this program does not know", j.Executor)
	}
	if j.Cipher != "" && j.Cipher != AES256GCM {
		return fmt.Errorf("engine: the shards of the job are encrypted by %.40q, which this program does not know", j.Cipher)
	}
	if j.Step, err = admit.Decode(step, program.DefaultLimits); err != nil {
		return err
	}
	if err := train.CheckProgram(j.Spec, j.Step); err != nil {
		return err
	}
	if j.Data, err = data.DecodeManifest(manifest); err != nil {
		return err
	}
	switch {
	case j.Data.Digest() != j.Spec.Data:
		return fmt.Errorf("engine: the corpus manifest is not the one of the specification")
	case len(j.Shards) < len(j.Data.Shards):
		return fmt.Errorf("engine: the job's bundle names %d shards, its manifest %d", len(j.Shards), len(j.Data.Shards))
	}
	if err := referee.Terms(j.Spec, j.Step, j.terms); err != nil {
		return fmt.Errorf("%w: %w", ErrTerms, err)
	}
	if err := referee.Check(j.Spec, j.Step, j.Data); err != nil {
		return fmt.Errorf("%w: %w", ErrUndecidable, err)
	}
	j.link, j.values = exchanged(j.Spec, j.Step)
	return nil
}

// Corpus fetches the whole data of a job.
func (j *Job) Corpus(ctx context.Context, get Getter) (*data.Corpus, error) {
	most := j.Largest()
	return data.Assemble(j.Data, func(i int) ([]byte, error) { return get(ctx, j.Shards[i], most) })
}

// Task makes a task of a job and its corpus, and fetches its frozen tensors unless shared has them; nil shares nothing.
// Those of a job in stages are laid aside, if there is room.
func (j *Job) Task(ctx context.Context, threads int, corpus data.Reader, get Getter, shared *hold.Shared,
	aside hold.Aside) (*train.Task, error) {
	most := j.Largest()
	exec, err := j.Spec.Compile(j.Step, threads)
	if err != nil {
		return nil, err
	}
	task := &train.Task{Spec: j.Spec, Step: j.Step, Exec: exec, Corpus: corpus}
	if err := task.Divide(); err != nil {
		return nil, err
	}
	var lay func(*tensor.Tensor) *tensor.Tensor
	if j.Spec.Pipeline != nil {
		lay = hold.RoomFor(aside, j.sizes().frozen)
	}
	return task, shared.Frozen(task, func() error {
		return loadFrozen(ctx, j.Frozen, task, lay,
			func(ctx context.Context, id blob.CID) ([]byte, error) { return get(ctx, id.String(), most) })
	})
}

// Blobs lists all that a job ships, without its first checkpoint: the shards of its data, and the rest.
func (j *Job) Blobs(ctx context.Context,
	get func(context.Context, blob.CID) ([]byte, error)) (list, shards []blob.CID, err error) {
	for i, s := range append([]string{j.CID, j.Program, j.Manifest}, j.Shards[:len(j.Data.Shards)]...) {
		c, err := blob.Parse(s)
		if err != nil {
			return nil, nil, err
		}
		if i < 3 {
			list = append(list, c)
		} else {
			shards = append(shards, c)
		}
	}
	if j.Frozen == "" {
		return list, shards, nil
	}
	c, err := blob.Parse(j.Frozen)
	if err != nil {
		return nil, nil, err
	}
	frozen, err := checkpoint.Blobs(ctx, get, c)
	return append(list, frozen...), shards, err
}

// Sliced reports whether rounds are reduced in slices.
func (j *Job) Sliced() bool { return j.terms.Sliced() }

// Footprint is how many bytes of blobs taking part in the job needs at most, with the last so many checkpoints of the
// lineage.
func (j *Job) Footprint(keep int) int64 { return Footprint(j.Spec, j.Step, j.Data, j.terms, keep) }

// Footprint is how many bytes of blobs a member of a run needs: what the job ships, of its data no more than the shards
// that are fetched at a time, the checkpoints and the updates of all rounds that may be open and of as many that a
// verdict has rolled back and that are still audited, and the last so many checkpoints of the lineage. Only where a
// second verdict falls before that is over there may be more.
func Footprint(s *train.Spec, step *program.Program, m data.Manifest, terms terms.Terms, keep int) int64 {
	f := newFootprint(s, step, terms)
	round := f.round // everybody's updates
	if terms.Sliced() {
		round = 3*f.updates + f.model // its own, the pieces of two slices, and the slices of the checkpoint
	}
	_, values := exchanged(s, step)
	round += 2 * values // its own, and what it fetches to execute those of another
	void := f.open
	if terms.Tolerance.DistancePPM > 0 || terms.Carry > 0 {
		void = 0 // nothing of a round that is rolled back can be audited
	}
	if terms.Carry > 0 {
		round += f.params // the carried state of its own unit
	}
	return f.with(Passing(m)+f.frozen, f.checkpoints(keep)+void, (f.open+void)*round)
}

// Together is how many bytes of blobs the parties of one process need, which have equal blobs once: as Footprint, but
// the updates and carried states of all units, and nothing of rounds that a verdict has rolled back, which falls on
// parties of other owners.
func Together(s *train.Spec, step *program.Program, m data.Manifest, terms terms.Terms, keep int) int64 {
	f := newFootprint(s, step, terms)
	round := f.round
	if terms.Sliced() {
		round += f.model
	}
	_, values := exchanged(s, step)
	round += int64(terms.Units) * values
	carried := f.params // of answers, which are small
	if s.Rollout == nil {
		carried = 0
		for _, shape := range train.HandedShapes(s.Exchange, step) {
			carried += int64(shape.Bytes())
		}
	}
	if terms.Carry == 0 {
		carried = 0
	}
	passing := min(f.open, int64(s.Rounds)-1) // the last round passes nothing on
	return f.with(Passing(m)+f.frozen, f.checkpoints(keep), f.open*round+passing*int64(terms.Units)*carried)
}

// footprint are the sizes, in bytes, of which the blobs of a job consist, and how many of its rounds may be open.
type footprint struct {
	sizes
	round        int64 // the updates of all units
	open, rounds int64
}

func newFootprint(s *train.Spec, step *program.Program, terms terms.Terms) footprint {
	f := footprint{sizes: sizesOf(s, step), rounds: int64(s.Rounds)}
	f.round = int64(terms.Units/terms.Pipeline.Stages()) * f.updates
	f.open = min(int64(terms.Window)+1, f.rounds)
	return f
}

// checkpoints counts the checkpoints of a member: those of open rounds or, if these are fewer, the last keep of the
// lineage; and the first.
func (f footprint) checkpoints(keep int) int64 { return min(1+max(f.open+1, int64(keep)), f.rounds+1) }

// with adds up, with programs, manifests and logs.
func (f footprint) with(shipped, checkpoints, rounds int64) int64 {
	need := shipped + checkpoints*f.model + rounds
	return need + need/16 + 1<<20
}

// Passing is how many bytes of shards a member has on its disk at least, while it fetches those that a unit reads: all
// of a small corpus.
func Passing(m data.Manifest) int64 { return min(m.Bytes(), ShardsAtOnce*m.ShardBytes(0)) }

// saveFrozen stores the tensors that a task reads and does not train, with their names in the step and their root
// (train.FrozenRoot), and returns the CID.
func saveFrozen(ctx context.Context, store blob.Store, jobID string, t *train.Task) (string, error) {
	tensors, inputs := map[string]*tensor.Tensor{}, train.Frozen(t.Step)
	for i, n := range inputs {
		inputs[i] = train.Param + n
		tensors[inputs[i]] = t.Frozen[i]
	}
	m := checkpoint.Manifest{Job: jobID, StateRoot: t.Spec.Frozen}
	id, err := checkpoint.SaveRooted(ctx, store, m, inputs, tensors, t.RootsOfFrozen())
	return id.String(), err
}

// loadFrozen fetches the frozen tensors of a task, and verifies their root and their shapes. lay is as for
// LoadCheckpointEach.
func loadFrozen(ctx context.Context, cid string, t *train.Task, lay func(*tensor.Tensor) *tensor.Tensor,
	get checkpoint.Getter) error {
	names := train.Frozen(t.Step)
	if len(names) == 0 {
		return nil
	}
	id, err := blob.Parse(cid)
	if err != nil {
		return err
	}
	if lay == nil {
		lay = func(t *tensor.Tensor) *tensor.Tensor { return t }
	}
	m, tensors, err := checkpoint.LoadTo(ctx, get, checkpoint.InTurn, id, lay)
	if err != nil {
		return err
	}
	of := map[string]canon.Digest{} // which LoadTo has verified
	for _, x := range m.Tensors {
		of[x.Name] = x.Root
	}
	shapes := t.Step.InputShapes()
	frozen, roots := make([]*tensor.Tensor, len(names)), make([]canon.Digest, len(names))
	for i, n := range names {
		in := train.Param + n
		if frozen[i], roots[i] = tensors[in], of[in]; frozen[i] == nil || !frozen[i].Shape.Equal(shapes[in]) {
			return fmt.Errorf("engine: the blob %s has no tensor %q of shape %v", cid, in, shapes[in])
		}
	}
	if train.FrozenRoot(roots) != t.Spec.Frozen {
		return fmt.Errorf("engine: the tensors of the blob %s are not those that the specification freezes", cid)
	}
	t.Frozen, t.FrozenRoots = frozen, roots
	return nil
}
