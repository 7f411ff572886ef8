package node

import (
	"context"
	"fmt"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run"
)

// engine is what one party computes with: the job's task, and the checkpoints it holds in memory. Its methods may be
// called from several goroutines; units are computed one at a time.
type engine struct {
	jobID string
	task  *train.Task
	store blob.Store
	fetch func(ctx context.Context, c blob.CID, holders []string) ([]byte, error)

	computing sync.Mutex // guards task.Exec
	mu        sync.Mutex // guards what follows
	held      map[run.Checkpoint]*train.Checkpoint
	witnesses map[disputed]*referee.Witness
}

// newTask decodes and checks what a job ships, as a party gets it from strangers.
func newTask(specBytes, programBytes, manifestBytes []byte, shards func(i int) ([]byte, error), want canon.Digest, threads int) (*train.Task, error) {
	spec, err := train.DecodeSpec(specBytes)
	if err != nil {
		return nil, err
	}
	if d := spec.Digest(); d != want {
		return nil, fmt.Errorf("node: the work specification is %s, the chain says %s", d.Short(), want.Short())
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

func loadCorpus(spec *train.Spec, manifestBytes []byte, shards func(i int) ([]byte, error)) (*data.Corpus, error) {
	m, err := data.DecodeManifest(manifestBytes)
	if err != nil {
		return nil, err
	}
	if m.Digest() != spec.Data {
		return nil, fmt.Errorf("node: the corpus manifest is not the one of the specification")
	}
	return assemble(m, shards)
}

// assemble puts a shipped corpus together. Nothing that the manifest does not bind gets in.
func assemble(m data.Manifest, shards func(i int) ([]byte, error)) (*data.Corpus, error) {
	parts := make([][]byte, len(m.Shards))
	for i := range parts {
		var err error
		if parts[i], err = shards(i); err != nil {
			return nil, err
		}
	}
	return data.Assemble(m, parts)
}

func (e *engine) hold(name run.Checkpoint, c *train.Checkpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held == nil {
		e.held = map[run.Checkpoint]*train.Checkpoint{}
	}
	for k := range e.held {
		if k.Round+1 < name.Round {
			delete(e.held, k)
		}
	}
	e.held[name] = c
}

// base returns a checkpoint that was loaded or combined before.
func (e *engine) base(name run.Checkpoint) (*train.Checkpoint, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.held[name]
	if !ok {
		return nil, fmt.Errorf("node: checkpoint %d is not held", name.Round)
	}
	return c, nil
}

// load fetches a checkpoint from the store or from its holders, and verifies its root.
func (e *engine) load(ctx context.Context, name run.Checkpoint, holders []string) error {
	c, err := loadCheckpoint(ctx, name, func(ctx context.Context, id blob.CID) ([]byte, error) { return e.fetch(ctx, id, holders) })
	if err != nil {
		return err
	}
	if err := sameParameters(c, e.task.Step); err != nil {
		return err
	}
	e.hold(name, c)
	return nil
}

func loadCheckpoint(ctx context.Context, name run.Checkpoint, get func(context.Context, blob.CID) ([]byte, error)) (*train.Checkpoint, error) {
	id, err := blob.Parse(name.CID)
	if err != nil {
		return nil, err
	}
	m, tensors, err := checkpoint.Load(ctx, get, id)
	if err != nil {
		return nil, err
	}
	c := &train.Checkpoint{Round: m.Round}
	for _, t := range m.Tensors {
		if n, ok := parameter(t.Name, train.Param); ok {
			c.Names = append(c.Names, n)
			c.Params = append(c.Params, tensors[t.Name])
			u, ok := tensors[train.Outer+n]
			if !ok {
				return nil, fmt.Errorf("node: checkpoint %d has no outer momentum for %q", name.Round, n)
			}
			c.Momentum = append(c.Momentum, u)
		}
	}
	if c.Round != name.Round || c.Root() != name.Root {
		return nil, fmt.Errorf("node: the blob %s is not checkpoint %d with root %s", name.CID, name.Round, name.Root.Short())
	}
	return c, nil
}

func parameter(name, prefix string) (string, bool) {
	if len(name) > len(prefix) && name[:len(prefix)] == prefix {
		return name[len(prefix):], true
	}
	return "", false
}

// sameParameters reports why a checkpoint is not one of the program's.
func sameParameters(c *train.Checkpoint, p *program.Program) error {
	shapes := map[string]tensor.Shape{}
	for _, in := range p.Inputs() {
		shapes[in.Name] = in.Shape
	}
	names := train.Params(p)
	if len(names) != len(c.Names) {
		return fmt.Errorf("node: the checkpoint has %d parameters, the program %d", len(c.Names), len(names))
	}
	for i, n := range names {
		want := shapes[train.Param+n]
		if c.Names[i] != n || !c.Params[i].Shape.Equal(want) || !c.Momentum[i].Shape.Equal(want) {
			return fmt.Errorf("node: parameter %d of the checkpoint is not %q %v", i, n, want)
		}
	}
	return nil
}

// save stores a checkpoint and returns its name.
func saveCheckpoint(ctx context.Context, store blob.Store, jobID string, c *train.Checkpoint) (run.Checkpoint, error) {
	root := c.Root()
	tensors := map[string]*tensor.Tensor{}
	names := make([]string, 0, 2*len(c.Names))
	for i, n := range c.Names {
		names = append(names, train.Param+n)
		tensors[train.Param+n] = c.Params[i]
	}
	for i, n := range c.Names {
		names = append(names, train.Outer+n)
		tensors[train.Outer+n] = c.Momentum[i]
	}
	id, err := checkpoint.Save(ctx, store, checkpoint.Manifest{Job: jobID, Round: c.Round, StateRoot: root}, names, tensors)
	if err != nil {
		return run.Checkpoint{}, err
	}
	return run.Checkpoint{Round: c.Round, Root: root, CID: id.String()}, nil
}

// work is a computed unit: what is committed, and the bytes of its update.
type work struct {
	commit run.Commitment
	update []byte
	log    []byte           // losses, for people
	delta  []*tensor.Tensor // pseudo-gradient, for the seal
}

// train computes a unit.
func (e *engine) train(ctx context.Context, name run.Checkpoint, unit uint32) (*work, error) {
	base, err := e.base(name)
	if err != nil {
		return nil, err
	}
	e.computing.Lock()
	defer e.computing.Unlock()
	r, err := e.task.Run(base, unit, func(uint32, float32) error { return ctx.Err() })
	if err != nil {
		return nil, err
	}
	u, err := outer.Commit(e.task.Spec, base.Round, unit, r)
	if err != nil {
		return nil, err
	}
	return newWork(u, r), nil
}

func newWork(u *codec.Update, r *train.Result) *work {
	var sum float64
	for _, l := range r.Losses {
		sum += float64(l)
	}
	b, log := u.Encode(), train.EncodeLog(u.Round, u.Unit, r.Losses)
	return &work{
		commit: run.Commitment{
			Segments: r.Segments, Update: u.Root(), UpdateCID: blob.Of(b).String(), Bytes: uint64(len(b)),
			Loss: int64(sum / float64(len(r.Losses)) * 1e6), Log: blob.Of(log).String(),
		},
		update: b, log: log, delta: r.Delta,
	}
}

// check re-executes a unit and compares. differ is the first segment root that differs, or the number of segment roots
// when only the update does.
func (e *engine) check(ctx context.Context, name run.Checkpoint, unit uint32, verifier string, c run.Commitment) (right bool, differ uint32, seal canon.Digest, err error) {
	mine, err := e.train(ctx, name, unit)
	if err != nil {
		return false, 0, seal, err
	}
	for i, want := range mine.commit.Segments {
		if i >= len(c.Segments) || c.Segments[i] != want {
			return false, uint32(i), seal, nil
		}
	}
	if c.Update != mine.commit.Update {
		return false, uint32(len(mine.commit.Segments)), seal, nil
	}
	end := c.Segments[len(c.Segments)-1]
	seal = audit.Seal(verifier, e.jobID, name.Round, unit, end, func(yield func([]byte) bool) {
		for _, t := range mine.delta {
			if !yield(t.Bytes()) {
				return
			}
		}
	})
	return true, 0, seal, nil
}

// advance combines the accepted updates of a round. get returns the bytes of the update of a unit.
func (e *engine) advance(ctx context.Context, name run.Checkpoint, units []run.Unit, get func(u run.Unit) ([]byte, error)) (run.Checkpoint, error) {
	base, err := e.base(name)
	if err != nil {
		return run.Checkpoint{}, err
	}
	deltas := make([][]*tensor.Tensor, len(units))
	for i, u := range units {
		b, err := get(u)
		if err != nil {
			return run.Checkpoint{}, err
		}
		want := outer.Expect(e.task.Spec, base, u.Index)
		want.Root = u.Commit.Update
		if _, deltas[i], err = codec.Unpack(b, want); err != nil {
			return run.Checkpoint{}, &badUpdate{u.Index, err}
		}
	}
	next, err := outer.Advance(e.task.Spec, base, deltas)
	if err != nil {
		return run.Checkpoint{}, err
	}
	saved, err := saveCheckpoint(ctx, e.store, e.jobID, next)
	if err != nil {
		return run.Checkpoint{}, err
	}
	e.hold(saved, next)
	return saved, nil
}

// badUpdate says that the update of a unit is not what its worker committed to, or cannot be had.
type badUpdate struct {
	unit uint32
	err  error
}

func (b *badUpdate) Error() string { return fmt.Sprintf("node: update of unit %d: %v", b.unit, b.err) }
func (b *badUpdate) Unwrap() error { return b.err }
