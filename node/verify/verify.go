// Package verify trains a finished run again, offline, and compares every bit, or evaluates a checkpoint of it.
// It trusts nothing in the folder but the job file and the blobs, whose digests it checks.
package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/node/dataset"
	"github.com/starling-network/starling/node/examples"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/prepare/hubfile"
	"github.com/starling-network/starling/node/prepare/judge"
	"github.com/starling-network/starling/node/release/envelope"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/hold"
)

// Options selects what Verify re-executes.
type Options struct {
	Round    int                    // one round from 1, or 0 for all
	JobFile  string                 // in place of the one that the run was started with
	Shipped  bool                   // take the data from the folder's blobs, not from the files that the job names
	Progress func(done, rounds int) // may be nil
}

// Result is what Verify confirmed.
type Result struct {
	Job       string       `json:"job"`
	Rounds    []uint32     `json:"rounds"` // re-executed, bit for bit
	Units     int          `json:"units"`
	Signers   []string     `json:"signers"` // of the last round
	StateRoot canon.Digest `json:"state_root"`
	Complete  bool         `json:"complete"` // the lineage reaches the last round of the job
	// exact-f32: updates are equal; tolerant: each is within the tolerance of the exact one
	Numerics string  `json:"numerics"`
	Distance float64 `json:"distance"` // largest of an update to the exact one, relative to its length
	// that this process had resident, at most; 0: not known
	PeakMemory uint64 `json:"peak_memory_bytes,omitempty"`
}

// MismatchError says that an output folder does not hold what its job, data and lineage determine.
type MismatchError struct {
	Round uint32 // first that differs; 0: not about a round
	What  string
}

func (e *MismatchError) Error() string {
	if e.Round > 0 {
		return fmt.Sprintf("round %d differs: %s", e.Round, e.What)
	}
	return e.What
}

// IncompleteError says that an output folder lacks what a run is verified with. It says nothing about the model.
type IncompleteError struct{ What string }

func (e *IncompleteError) Error() string { return e.What }

func mismatch(round uint32, format string, args ...any) error {
	return &MismatchError{Round: round, What: fmt.Sprintf(format, args...)}
}

// Run re-executes a run offline, from the job file, the data and the lineage, and confirms every attested state root.
// It trusts nothing in the folder: blobs are hashed, signatures are checked, and updates are computed again. Those of a
// tolerant run are held against the exact ones, and combined as they are.
func Run(ctx context.Context, dir string, opt Options) (*Result, error) {
	defer memory.Pace(0)()
	o := &rundir.OutDir{Path: dir}
	if err := o.ReadRun(); err != nil {
		return nil, err
	}
	j, err := o.LoadJob(opt.JobFile)
	if err != nil {
		return nil, err
	}
	store, err := openBlobs(ctx, o)
	if err != nil {
		return nil, err
	}
	check := prepare.New
	if opt.Shipped {
		tokens := dataset.Spool()
		defer tokens.Close()
		check = func(j *job.Job) (*prepare.CompiledJob, error) { return shipped(o, ctx, j, store, tokens) }
	}
	b, err := check(j)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if !b.Is(o.Run.ID) {
		return nil, mismatch(0, "%s", differences(o, ctx, b, store))
	}
	lines, err := rundir.ParseLineage(o.File(rundir.FileLineage), o.Run.ID)
	if err != nil {
		return nil, mismatch(uint32(len(lines)+1), "%v", err)
	}
	if len(lines) == 0 {
		return nil, mismatch(0, "%s has no complete line: no checkpoint was attested yet", rundir.FileLineage)
	}
	if len(lines) > int(b.Spec.Rounds) {
		return nil, mismatch(b.Spec.Rounds+1, "the job has %d rounds, the lineage %d", b.Spec.Rounds, len(lines))
	}
	return newVerification(o, b, lines, store, opt).run(ctx)
}

// shipped makes a job ready from the data that its run shipped, whose tokens go into a spool.
func shipped(o *rundir.OutDir, ctx context.Context, j *job.Job, store *blob.Disk,
	tokens *memory.Spool) (*prepare.CompiledJob, error) {
	get := func(cid string) ([]byte, error) {
		id, err := blob.Parse(cid)
		if err != nil {
			return nil, err
		}
		return store.Get(ctx, id)
	}
	raw, err := get(o.Run.Blobs.Manifest)
	if err != nil {
		return nil, err
	}
	m, err := data.DecodeManifest(raw)
	if err != nil {
		return nil, err
	}
	var secret envelope.Secret
	if j.EncryptData {
		if secret, err = envelope.ReadSecret(o.File(rundir.FileDataKey)); err != nil {
			return nil, &IncompleteError{"the shards are encrypted, and their secret is not there: " + err.Error()}
		}
	}
	err = m.Write(tokens, func(i int) ([]byte, error) {
		if i >= len(o.Run.Blobs.Shards) {
			return nil, fmt.Errorf("%s names %d shards, the manifest %d", rundir.FileRun, len(o.Run.Blobs.Shards), len(m.Shards))
		}
		raw, err := get(o.Run.Blobs.Shards[i])
		if err == nil && j.EncryptData {
			raw, err = envelope.OpenShard(secret.Key(i, m.Shards[i]), raw)
		}
		return raw, err
	})
	if err != nil {
		return nil, err
	}
	raw, err = tokens.Bytes(int(m.Bytes()))
	if err != nil {
		return nil, err
	}
	corpus := m.Corpus(raw, tokens.Rest)
	if !j.ReadsText() {
		text, err := os.ReadFile(o.File(prepare.FileConfig))
		if err != nil {
			return nil, err
		}
		var read map[string]*tensor.Tensor
		var tok *tokenizer.Tokenizer
		var base *folder.Model
		if j.EncodesText() {
			tok, base, err = shippedLanguage(o, ctx, j, store)
		} else {
			read, err = o.ShippedFrozen(ctx, store)
		}
		if err != nil {
			return nil, err
		}
		c, err := examples.Shipped(j, text, corpus, read, tok)
		if err != nil {
			return nil, err
		}
		return prepare.AssembleExamples(j, c, base)
	}
	tok, base, err := shippedLanguage(o, ctx, j, store)
	if err != nil {
		return nil, err
	}
	frozen, err := o.ShippedFrozen(ctx, store)
	if err != nil {
		return nil, err
	}
	judges, err := judge.Shipped(j, frozen, func(name string) ([]byte, error) { return os.ReadFile(o.File(name)) })
	if err != nil {
		return nil, err
	}
	return prepare.Assemble(j, base, tok, corpus, judges)
}

// shippedLanguage are the tokenizer of a run, and the model that it started from, if it did not start from scratch.
func shippedLanguage(o *rundir.OutDir, ctx context.Context, j *job.Job, store *blob.Disk) (*tokenizer.Tokenizer,
	*folder.Model, error) {
	text, err := os.ReadFile(o.File(prepare.FileTokenizer))
	if err != nil {
		return nil, nil, err
	}
	tok, err := tokenizer.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	base, err := o.ShippedBase(ctx, j, store)
	return tok, base, err
}

// differences says in what a job is not the one of the folder.
func differences(o *rundir.OutDir, ctx context.Context, b *prepare.CompiledJob, store *blob.Disk) string {
	what := "the job file or the program"
	if id, err := blob.Parse(o.Run.Blobs.Spec); err == nil {
		if text, err := store.Get(ctx, id); err == nil {
			if was, err := train.DecodeSpec(text); err == nil && (was.Data != b.Spec.Data ||
				b.Job.Task == spec.TaskGraph && was.Frozen != b.Spec.Frozen) { // a graph is data, too
				what = "the data"
			} else if err == nil && was.Program == b.Spec.Program && was.Frozen != b.Spec.Frozen {
				what = "the base model or a reward model"
			}
		}
	}
	return fmt.Sprintf("%s is not what the run was made from: it gives %s, the folder holds %s", what, b.JobID(), o.Run.ID)
}

// openBlobs opens the blob store of a folder and hashes everything in it.
func openBlobs(ctx context.Context, o *rundir.OutDir) (*blob.Disk, error) {
	store, err := blob.OpenDisk(o.File(rundir.DirBlobs))
	if err != nil {
		return nil, err
	}
	ids, err := store.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := hash(ctx, store, id); err != nil {
			return nil, mismatch(0, "blob %s: %v", id, err)
		}
	}
	need := append([]string{o.Run.Blobs.Spec, o.Run.Blobs.Program, o.Run.Blobs.Manifest}, o.Run.Blobs.Shards...)
	for _, c := range need {
		id, err := blob.Parse(c)
		if err != nil {
			return nil, mismatch(0, "%s names the blob %q: %v", rundir.FileRun, c, err)
		}
		if ok, err := store.Has(ctx, id); err != nil || !ok {
			return nil, &IncompleteError{fmt.Sprintf("blob %s is missing from %s", c, filepath.Join(o.Path, rundir.DirBlobs))}
		}
	}
	return store, hasCheckpoints(o, ctx, store)
}

// hash reads a blob leaf by leaf, and compares each with its digest.
func hash(ctx context.Context, store *blob.Disk, id blob.CID) error {
	r, err := store.Open(ctx, id)
	if err != nil {
		return err
	}
	defer r.Close()
	var leaf []byte
	for i := range r.Manifest().Leaves {
		if leaf, err = r.Leaf(leaf[:0], i); err != nil {
			return err
		}
	}
	return nil
}

// hasCheckpoints looks for the blobs of the checkpoints that the job shipped.
func hasCheckpoints(o *rundir.OutDir, ctx context.Context, store *blob.Disk) error {
	for _, c := range []string{o.Run.Blobs.Genesis, o.Run.Blobs.Frozen} {
		if c == "" {
			continue
		}
		id, err := blob.Parse(c)
		if err != nil {
			return mismatch(0, "%s names the checkpoint %q: %v", rundir.FileRun, c, err)
		}
		list, err := checkpoint.Blobs(ctx, store.Get, id)
		if errors.Is(err, blob.ErrNotFound) {
			return &IncompleteError{fmt.Sprintf("checkpoint %s is missing from %s", c, filepath.Join(o.Path, rundir.DirBlobs))}
		}
		if err != nil {
			return mismatch(0, "checkpoint %s in %s: %v", c, filepath.Join(o.Path, rundir.DirBlobs), err)
		}
		for _, b := range list {
			if ok, err := store.Has(ctx, b); err != nil || !ok {
				return &IncompleteError{fmt.Sprintf("blob %s of the checkpoint %s is missing from %s", b, c,
					filepath.Join(o.Path, rundir.DirBlobs))}
			}
		}
	}
	return nil
}

type verification struct {
	out   *rundir.OutDir
	b     *prepare.CompiledJob
	lines []rundir.Line
	store *blob.Disk
	opt   Options
	tasks chan *train.Task // one for each unit that is computed at a time
	on    []*hold.Tensors  // the state that each unit carries to the next round; nil: none
	sent  []sent           // updates that are in no checkpoint yet
	drawn answers          // what units learn from that draw nothing by themselves

	seen     sync.Mutex
	distance float64 // largest so far
}

// names is a store that only says how blobs are called.
type names struct{ blob.Store }

func (names) Put(_ context.Context, data []byte) (blob.CID, error) { return blob.Of(data), nil }

func newVerification(o *rundir.OutDir, b *prepare.CompiledJob, lines []rundir.Line, store *blob.Disk,
	opt Options) *verification {
	return &verification{out: o, b: b, lines: lines, store: store, opt: opt}
}

func (v *verification) run(ctx context.Context) (*Result, error) {
	units, threads := prepare.Turns(v.b)
	units = min(units, int(v.b.Spec.Units))
	v.tasks = make(chan *train.Task, units)
	for range units {
		exec, err := v.b.Spec.Compile(v.b.Step, threads)
		if err != nil {
			return nil, err
		}
		task := prepare.TaskOf(v.b, exec)
		task.Spec = task.Spec.Unsplit()
		if err := task.Divide(); err != nil {
			return nil, err
		}
		v.tasks <- task
	}
	first, last := uint32(1), uint32(len(v.lines))
	if v.opt.Round > 0 {
		if v.opt.Round > len(v.lines) {
			return nil, mismatch(uint32(v.opt.Round), "the lineage has %d rounds", len(v.lines))
		}
		first, last = uint32(v.opt.Round), uint32(v.opt.Round)
	}
	v.b.Genesis = hold.Lay(v.aside(), v.b.Genesis)
	if prepare.Large(v.b) {
		defer memory.Bare()()
	}
	base, err := v.start(ctx, first-1)
	if err != nil {
		return nil, err
	}
	out := &Result{Job: v.out.Run.ID, Complete: len(v.lines) == int(v.b.Spec.Rounds), Numerics: v.b.Job.Training.Numerics}
	from := base.Round
	for base.Round < last {
		if base, err = v.round(ctx, base); err != nil {
			return nil, err
		}
		if base.Round >= first {
			out.Rounds = append(out.Rounds, base.Round)
		}
		out.Units += int(v.b.Spec.Units)
		if v.b.Spec.Apart().Draw(base.Round - 1) {
			out.Units += int(v.b.Spec.Apart().Drawing())
		}
		if v.opt.Progress != nil {
			v.opt.Progress(int(base.Round-from), int(last-from))
		}
	}
	out.StateRoot, out.Distance = base.Root(), v.distance
	for _, s := range v.lines[last-1].Signers {
		out.Signers = append(out.Signers, s.ID)
	}
	if v.opt.Round == 0 && out.Complete {
		err = v.model(base)
	}
	out.PeakMemory = memory.Peak()
	return out, err
}

// start returns the checkpoint after a number of rounds: the newest stored one that the lineage confirms, or genesis.
func (v *verification) start(ctx context.Context, rounds uint32) (*train.Checkpoint, error) {
	for r := rounds; r > 0; r-- {
		if v.b.Spec.Carries(r-1) || !v.policies(ctx, r) {
			continue // its carried state is not stored, or a policy is not whose answers it learns from
		}
		if c, err := bundle.LoadCheckpointEach(ctx, v.lines[r-1].AsCheckpoint(), v.store.Get, checkpoint.InTurn,
			v.room()); err == nil {
			return c, nil
		}
	}
	return v.b.Genesis, nil
}

// aside is where large states, updates and checkpoints lie: the folder of the run.
func (v *verification) aside() memory.Aside {
	return memory.Aside{Dir: v.out.Path, Least: memory.LeastRoom}
}

// room is where the tensors of one checkpoint lie; nil: in memory.
func (v *verification) room() func(*tensor.Tensor) *tensor.Tensor {
	return v.aside().Room(v.b.Size().Checkpoint())
}

// round re-executes one round and compares every update and the state root with the lineage.
func (v *verification) round(ctx context.Context, base *train.Checkpoint) (*train.Checkpoint, error) {
	line := v.lines[base.Round]
	tolerant := demand.Tolerance(v.b.Job).DistancePPM > 0
	made := make([]sent, v.b.Spec.Units)
	from, on := v.on, make([]*hold.Tensors, v.b.Spec.Units)
	if from == nil || !v.b.Spec.Carries(base.Round-1) {
		from = make([]*hold.Tensors, v.b.Spec.Units)
	}
	if err := v.draw(ctx, base); err != nil {
		return nil, err
	}
	g, working := errgroup.WithContext(ctx)
	for unit := range v.b.Spec.Units {
		if v.b.Spec.Pipeline != nil {
			if replica, stage := v.b.Spec.Pipeline.Of(unit); stage == 0 {
				g.Go(func() error { return v.replica(working, base, replica, made[unit:unit+v.b.Spec.Pipeline.Stages()]) })
			}
			continue
		}
		g.Go(func() (err error) {
			task := <-v.tasks
			defer func() { v.tasks <- task }()
			given := from[unit]
			if v.b.Spec.Rollout != nil {
				given = v.given(base.Round, unit)
			}
			made[unit], on[unit], err = v.unit(working, task, base, unit, given)
			if err == nil && tolerant {
				made[unit].tolerated, err = v.tolerated(working, base, unit, made[unit])
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	v.on, v.sent = on, append(v.sent, made...)
	updates, deltas, err := v.applied(base)
	if err != nil {
		return nil, err
	}
	if i := firstDifference(updates, line.Updates); i >= 0 && !tolerant {
		return nil, mismatch(line.Round, "the update of unit %d is not the attested one", i%len(made))
	}
	next, err := outer.Consume(v.b.Spec, base, deltas, v.room())
	if err != nil {
		return nil, err
	}
	if root := next.Root(); root != line.StateRoot {
		return nil, mismatch(line.Round, "the state root is %s, attested was %s", root.Short(), line.StateRoot.Short())
	}
	name, err := bundle.SaveCheckpoint(ctx, names{}, v.out.Run.ID, next)
	if err != nil {
		return nil, err
	}
	if name.CID != line.Checkpoint {
		return nil, mismatch(line.Round, "the checkpoint's CID is %s, attested was %s", name.CID, line.Checkpoint)
	}
	return next, nil
}

func firstDifference(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

// model confirms that the exported model is the last checkpoint.
func (v *verification) model(last *train.Checkpoint) error {
	defer last.Rest()
	leaves, err := v.b.Leaves()
	if err != nil {
		return err
	}
	older, err := v.b.Before()
	if err != nil {
		return err
	}
	best, err := v.best(last)
	if err != nil {
		return err
	}
	want, err := prepare.ExportModel(v.b, last, best, leaves)
	if err != nil {
		return err
	}
	earlier, err := prepare.ExportModel(v.b, last, best, older)
	if err != nil {
		return err
	}
	for _, f := range want {
		same, err := f.IsAt(v.out.File(f.Name))
		if before := slices.IndexFunc(earlier, func(e hubfile.File) bool { return e.Name == f.Name }); !same &&
			err == nil && before >= 0 {
			same, err = earlier[before].IsAt(v.out.File(f.Name))
		}
		if err != nil {
			return mismatch(0, "%v", err)
		}
		if !same {
			return mismatch(0, "%s is not the model of the last checkpoint", f.Name)
		}
	}
	return nil
}
