package prepare

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/chain/referee/question"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/gguf"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/slice"
	"github.com/starling-network/starling/node/dataset"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare/cut"
	"github.com/starling-network/starling/node/prepare/judge"
	"github.com/starling-network/starling/node/prepare/rules"
	"github.com/starling-network/starling/node/prepare/strategy"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
)

// Model is what a job trains.
type Model interface {
	Architecture() string
	Parameters() int // the number of weights
	Tensors() []architecture.Named
	JSON() []byte // its config.json
}

// CompiledJob is a job made ready to run: everything that its job file and its data determine.
type CompiledJob struct {
	Job         *job.Job
	Model       Model
	Language    *architecture.Config // Model, if it is a language model; nil: it is none
	Tokenizer   *tokenizer.Tokenizer // of a language model, or of a classifier of texts
	Corpus      *data.Corpus
	Manifest    data.Manifest
	Example     int              // tokens of an example
	Step        *program.Program // one inner step
	Eval        *program.Program // the loss of EvalBatch examples
	EvalBatch   int
	Spec        *train.Spec
	Genesis     *train.Checkpoint
	Frozen      []*tensor.Tensor // by train.Frozen(Step): of the base model, if an adapter is trained, or of a graph
	FrozenRoots []canon.Digest   // of Frozen
	Ignored     []string         // keys of the base model's config.json that mean nothing to it
	// Files are those in which the tensors of the base model lie; nil: it has none
	Files  *memory.Folder
	Slices uint32      // in which a round is reduced; 0: every member combines all updates
	Seal   bundle.Seal // encrypts the shards that are published; nil: they are not encrypted

	Trained architecture.Config       // Language or that of a network for texts, with its adapter if it has one
	read    map[string]*tensor.Tensor // Frozen by names, if it is no base model
	judges  judge.Models              // that reward answers
	rule    []byte                    // of rewards, as grade.Rule encodes it; nil: there is none
	ends    []int                     // tokens that end an answer that it rewards
	drawn   *canon.Digest             // architecture.InitDigest of weights that the seed draws; nil: others
	before  []int                     // groups of layers before which Step is cut into stages
	held    io.Closer                 // the tokens of Corpus; nil: they are in memory
	name    atomic.Pointer[string]    // that the run of the job has; nil: JobID
}

const (
	evalBatch      = 8        // sequences that are evaluated at a time, at most
	leastShare     = 0.75     // of the time that machines work of the paces that units are made for
	segmentsOfUnit = 4        // state roots that a worker commits to per unit, besides the first
	evalLogits     = 64 << 20 // bytes of the logits of the sequences that are evaluated at a time, of more than one
)

// New reads the data of a job, and builds its programs and its first checkpoint. Errors about the job are a
// *problem.ErrorList with the place in the file. The caller closes the job.
func New(j *job.Job) (*CompiledJob, error) { return Watched(j, nil) }

// Watched is New whose tokenizing is watched, as by dataset.Corpus.
func Watched(j *job.Job, watch data.Watch) (*CompiledJob, error) { return begun(outlineOf(j, watch)) }

// Outline is New without the first checkpoint of a model from scratch, which is what New takes memory and time for: the
// specification lacks its root, and Genesis is nil, until Begin. The identifiers are those of New.
func Outline(j *job.Job) (*CompiledJob, error) { return outlineOf(j, nil) }

func outlineOf(j *job.Job, watch data.Watch) (*CompiledJob, error) {
	if !j.ReadsText() {
		return readExamples(j)
	}
	sources, err := dataset.Sources(j)
	if err != nil {
		return nil, err
	}
	tok, err := dataset.Tokenizer(j, sources)
	if err != nil {
		return nil, err
	}
	base, files, err := readBase(j)
	if err != nil {
		return nil, err
	}
	corpus, held, err := dataset.Corpus(j, sources, tok, watch)
	if err != nil {
		_ = files.Close()
		return nil, err
	}
	judges, err := judge.Read(j, tok)
	if err != nil {
		_, _ = files.Close(), held.Close()
		return nil, err
	}
	b, err := outline(j, base, files, tok, corpus, judges)
	if err != nil {
		_, _ = files.Close(), held.Close()
		return nil, err
	}
	b.held = held
	return b, nil
}

// Assemble makes a job ready whose files are read. base is nil for a model from scratch.
func Assemble(j *job.Job, base *folder.Model, tok *tokenizer.Tokenizer, corpus *data.Corpus,
	judges judge.Models) (*CompiledJob, error) {
	return begun(outline(j, base, nil, tok, corpus, judges))
}

// begun makes the first checkpoint of an outline.
func begun(b *CompiledJob, err error) (*CompiledJob, error) {
	if err != nil {
		return nil, err
	}
	if err := b.Begin(); err != nil {
		_ = b.Close()
		return nil, err
	}
	return b, nil
}

// Close gives back the files in which the base model and the tokens lie. Neither Frozen, nor a Genesis that is the base
// model, nor the Corpus may be used after it.
func (b *CompiledJob) Close() error {
	err := b.Files.Close()
	if b.held != nil {
		err = errors.Join(err, b.held.Close())
	}
	return err
}

// compilation is a job that is made ready: outline calls its steps, which fill in the fields of the job.
type compilation struct{ *CompiledJob }

// outline is Outline of a job whose files are read. files are those in which the base model lies.
func outline(j *job.Job, base *folder.Model, files *memory.Folder, tok *tokenizer.Tokenizer,
	corpus *data.Corpus, judges judge.Models) (*CompiledJob, error) {
	if j.EncryptData {
		bundle.CutToSeal(corpus)
	}
	b := compilation{&CompiledJob{Job: j, Tokenizer: tok, Corpus: corpus, Manifest: corpus.Manifest(bundle.ShardTokens),
		Files: files, Example: j.ExampleTokens(), judges: judges, read: judges.Tensors}}
	if err := b.corpusFits(); err != nil {
		return nil, err
	}
	if err := b.chooseModel(base); err != nil {
		return nil, err
	}
	if err := b.checkLanguage(); err != nil {
		return nil, err
	}
	b.EvalBatch = max(1, min(evalBatch, evalLogits/(BytesOfWeight*b.Example*b.Language.VocabSize())))
	return b.finish(base)
}

// finish makes the programs of a job whose data and model are there, and its first checkpoint if it is base.
func (b compilation) finish(base *folder.Model) (*CompiledJob, error) {
	if err := b.buildPrograms(); err != nil {
		return nil, err
	}
	if b.read != nil && base == nil {
		if err := b.freeze(train.Frozen(b.Step), b.read); err != nil {
			return nil, err
		}
	}
	if base != nil {
		if err := b.begin(base); err != nil {
			return nil, err
		}
	} else {
		drawn := architecture.InitDigest(b.Model.Tensors())
		b.drawn = &drawn
	}
	if err := b.Specify(); err != nil {
		return nil, err
	}
	return b.CompiledJob, nil
}

// Specify makes the work specification of a job whose model and first checkpoint are there.
func (b *CompiledJob) Specify() error {
	j := b.Job
	b.Spec = compilation{b}.spec()
	if err := cut.Into(j, b.Step, b.before, b.Spec); err != nil {
		return err
	}
	if err := b.Spec.Check(); err != nil {
		return j.Refuse("training", problem.BadValue, "the job cannot be run as it is", err,
			"change the value that is named")
	}
	if over, _ := bits.Mul64(parts.Flops(b.Step), uint64(b.Spec.Steps)); over > 0 {
		return j.Refuse("strategy.sync_steps", problem.TooLarge, "a unit is too large to be paid",
			fmt.Errorf("it has more than 2^64 operations: %d steps of %.3g", b.Spec.Steps, float64(b.Step.Flops())),
			"lower sync_steps, or training.global_batch_size")
	}
	speeds := j.Strategy.Workers.RelativeSpeeds
	if _, share := outer.Sizes(b.Spec.Steps, speeds); speeds != nil &&
		share < leastShare {
		return j.Refuse("strategy.workers.relative_speeds", problem.BadValue, "units of these speeds cannot be made",
			fmt.Errorf("cut into at most 20 segments of whole steps, units of %d steps let machines of these speeds work %.0f "+
				"%% of the time", b.Spec.Steps, 100*share),
			"use a sync_steps that is a multiple of 20, and no pace below 0.05")
	}
	if err := outer.Check(b.Spec.Exchange); err != nil {
		return j.Refuse("strategy", problem.BadValue, "the strategy cannot be run as it is", err,
			"change the value that is named")
	}
	if err := outer.Exchanged(b.Spec.Exchange, train.Params(b.Step)); err != nil {
		return j.Refuse("strategy.replicas.fragments", problem.BadValue, "the model has fewer layers than that", err,
			"lower fragments")
	}
	if err := (compilation{b}).slice(); err != nil {
		return err
	}
	if err := referee.Check(b.Spec, b.Step, b.Manifest); err != nil {
		return j.Refuse("model", problem.Unsupported, "a dispute about this job could not be decided", err,
			"make the rows of the tensor that is named shorter: vocab_size below about 190000 for a loss; or, of a program "+
				"that is too large, raise training.micro_batch_size or lower rollout.max_tokens or rollout.group")
	}
	return nil
}

// readBase reads the model that a job starts from, if it does, and returns the folder in which its tensors lie.
func readBase(j *job.Job) (*folder.Model, *memory.Folder, error) {
	if j.Model.BaseModel == "" {
		return nil, nil, nil
	}
	files := memory.OpenFolder(j.BaseModelPath())
	base, err := folder.Read(files)
	if err != nil {
		_ = files.Close()
		return nil, nil, j.Refuse("model.base_model", problem.BadValue, "the base model cannot be used", err,
			"give a model folder in Hugging Face form, of an architecture that docs/models.md lists, with its weights as "+
				"safetensors")
	}
	return base, files, nil
}

func (b compilation) corpusFits() error {
	j := b.Job
	need := b.Example + 1
	if n := b.Corpus.Train.Len(); n < need {
		return j.Refuse("datasets", problem.NoData, "there is too little training data",
			fmt.Errorf("%d tokens, and one example needs %d", n, need), "add data or lower sequence_len")
	}
	if n := b.Corpus.Val.Len(); j.ValSetSize > 0 && n < need {
		return j.Refuse("val_set_size", problem.NoData, "there is too little data to evaluate on",
			fmt.Errorf("%d tokens are held out, and one example needs %d", n, need), "raise val_set_size or lower sequence_len")
	}
	return nil
}

// chooseModel takes the language model from the base, or from the job's own description.
func (b compilation) chooseModel(base *folder.Model) (err error) {
	m := b.Job.Model
	if base != nil {
		b.Model, b.Language, b.Ignored = base.Config, &base.Config, base.Ignored
		if is := b.Model.Architecture(); m.Architecture != "" && m.Architecture != is {
			return b.Job.Refuse("model.architecture", problem.BadValue, "the base model is another",
				fmt.Errorf("it is %s, the job says %s", is, m.Architecture), "remove architecture")
		}
		return b.adapt(base.Config)
	}
	raw := map[string]any{"vocab_size": b.Tokenizer.VocabSize()}
	for k, v := range m.Config {
		raw[k] = v
	}
	config, err := architecture.Parse(m.Architecture, raw)
	if err != nil {
		return b.Job.Refuse("model.config", problem.BadValue, "the model cannot be built", err,
			"use the keys of a Hugging Face config.json of this architecture")
	}
	b.Model, b.Language, b.Trained = config, &config, config
	return nil
}

// checkLanguage checks that the language model fits to the tokens, and that it can do what the job asks of it.
func (b compilation) checkLanguage() (err error) {
	j := b.Job
	if v := b.Tokenizer.VocabSize(); b.Language.VocabSize() < v {
		return j.Refuse("model.config.vocab_size", problem.BadValue, "the model's vocabulary is too small",
			fmt.Errorf("the tokenizer has %d ids, the model %d", v, b.Language.VocabSize()), "leave vocab_size out, or raise it")
	}
	if c := b.Language.Context(); j.SequenceLen > c {
		return j.Refuse("sequence_len", problem.BadValue, "the sequences are longer than the model's context",
			fmt.Errorf("%d tokens against %d", j.SequenceLen, c), "lower sequence_len or raise the context in model.config")
	}
	for i, text := range j.Eval.Prompts {
		if n, c := len(b.Tokenizer.EncodeText(text)), b.Language.Context(); n > c {
			return j.Refuse(fmt.Sprintf("eval.prompts.%d", i), problem.BadValue,
				"a prompt is longer than the model's context", fmt.Errorf("%d tokens against %d", n, c), "shorten it")
		}
	}
	if wantsGGUF(b.Job) {
		if err := gguf.Writes(*b.Language); err != nil {
			return j.Refuse("output.formats", problem.Unsupported, "gguf is not written for this model", err,
				"use safetensors, or architecture: llama")
		}
	}
	return nil
}

// buildPrograms makes the programs of the model.
func (b compilation) buildPrograms() (err error) {
	j := b.Job
	if b.Language != nil {
		if err := rules.Fit(j, b.Language.Layers); err != nil {
			return err
		}
	}
	if err := cmp.Or(strategy.Apart(j), b.ruled()); err != nil {
		return err
	}
	task, err := b.task(j.WorkerBatch(), j.MicroBatch())
	if err == nil {
		b.Step, err = task.TrainStep(strategy.Optimizer(b.Job.Spec))
	}
	if err == nil && j.Parallel.On() {
		if b.Step, b.before, err = cut.Before(j, *b.Language, task, b.Step); err != nil {
			return err
		}
	}
	if err != nil {
		return j.Refuse("model", problem.BadValue, "the training step cannot be built", err, "check model.config")
	}
	if task, err = b.task(b.EvalBatch, 0); err == nil {
		b.Eval, err = task.Eval()
	}
	if err != nil {
		return j.Refuse("model", problem.BadValue, "the evaluation cannot be built", err, "check model.config")
	}
	numerics := cmp.Or(j.Numerics, market.DefaultParams().NumericsAt(1))
	b.Step, b.Eval = b.Step.In(numerics), b.Eval.In(numerics)
	return kernel.Knows(numerics)
}

func (b compilation) spec() *train.Spec {
	j := b.Job
	t, st := j.Training, j.Strategy
	steps := uint32(st.SyncSteps)
	s := &train.Spec{
		Version: 1, Numerics: b.Step.Numerics, Name: j.Name, Seed: j.Seed,
		Program: b.Step.Digest(), Data: b.Manifest.Digest(), Frozen: train.FrozenRoot(b.FrozenRoots),
		Rounds: uint32(j.Rounds()), Steps: steps, Segment: (steps + segmentsOfUnit - 1) / segmentsOfUnit,
		Units: uint32(st.Workers.Target), Batch: uint32(j.WorkerBatch()), Length: uint32(b.Example),
		Rate: train.Rate{Kind: t.LRScheduler, Peak: t.LearningRate, Warmup: uint32(t.WarmupSteps), Floor: t.MinLRRatio,
			Decay: t.LRDecayRatio},
		Exchange: b.Exchange(), Recompute: t.GradientCheckpointing,
		Block: uint64(j.ShuffleShards) * bundle.ShardTokens / uint64(b.Example),
	}
	if sizes, _ := outer.Sizes(steps, st.Workers.RelativeSpeeds); len(sizes) > 0 && slices.Min(sizes) < slices.Max(sizes) {
		s.Sizes, s.Segment = sizes, steps/slices.Max(sizes)
	}
	if b.Genesis != nil {
		s.Genesis = b.Genesis.Root()
	}
	if j.Rollout.Apart() {
		s.Rollout = &train.Rollout{Staleness: uint32(j.Rollout.Staleness),
			Shared: j.Rollout.Swarm() && j.Rollout.Shared > 0}
	}
	if n := t.Optimizer.Name; !s.Exchange.Gradients && (n == spec.AdamW || n == spec.Adafactor) {
		s.Beta1, s.Beta2 = t.Optimizer.Betas[0], t.Optimizer.Betas[1]
	}
	return s
}

// Exchange says how the updates of the job travel and are combined.
func (b *CompiledJob) Exchange() train.Exchange { return strategy.Exchange(b.Job.Spec) }

// slice decides in how many slices rounds are reduced: half as many as there are workers, so that each reduces one.
func (b compilation) slice() error {
	const at = "strategy.aggregation.slices"
	s := b.Job.Strategy
	want := int(s.Aggregation.Slices)
	if b.Job.Rollout.Apart() || b.Spec.Pipeline != nil { // every member combines whole updates
		return nil
	}
	screened := b.Job.Given("strategy.verification.screen") && s.Verification.Screen != "off"
	if want == 1 || want == 0 && (s.Workers.Target < spec.SlicesFrom || screened ||
		b.Job.Training.Numerics == spec.Tolerant) {
		return nil
	}
	most, err := engine.MostSlices(b.Spec.Exchange, b.Step)
	switch {
	case want == 0 && errors.Is(err, slice.ErrRule):
		return nil
	case err != nil:
		return b.Job.Refuse(at, problem.Unsupported, "the rounds cannot be reduced in slices", err, "use slices: 1")
	case want == 0:
		want = min(s.Workers.Target/2, most)
	}
	if most = min(most, terms.MaxSlices); want > most {
		return b.Job.Refuse(at, problem.BadValue, "the model cannot be cut into as many slices",
			fmt.Errorf("%d, at most %d", want, most), "lower slices")
	}
	b.Slices = uint32(want)
	return nil
}

// UnitFlops is the number of floating-point operations of a whole work unit, of those that learn.
func (b *CompiledJob) UnitFlops() uint64 { return parts.Flops(b.Step) * uint64(b.Spec.Steps) }

// JobID is the identifier of the job: it binds the data, the program, and all else that the training depends on.
// Weights that the seed draws are bound by how they are drawn, so that a plan has the identifier without them. If
// another account has taken that name, a dot and the account of the consumer follow, for which such a name is kept.
func (b *CompiledJob) JobID() string {
	if name := b.name.Load(); name != nil {
		return *name
	}
	s := *b.Spec
	if b.drawn != nil {
		s.Genesis = *b.drawn
	}
	return idOf(&s)
}

func idOf(s *train.Spec) string { return "job-" + s.Digest().String()[:16] }

// Keep gives the job a name that is kept for an account. The mark tells the job from others of the account that are the
// same; "": there are none.
func (b *CompiledJob) Keep(mark, account string) {
	own, _, _ := strings.Cut(b.JobID(), ".")
	if mark != "" {
		own += "." + mark
	}
	own += "." + account
	b.name.Store(&own)
}

// Is reports whether a run is one of the job, and gives the job the name that it has there. An older run is named after
// the bytes of its first checkpoint.
func (b *CompiledJob) Is(id string) bool {
	if name := b.name.Load(); name != nil {
		return id == *name
	}
	own, account, kept := strings.Cut(id, ".")
	if own != b.JobID() && own != idOf(b.Spec) || kept && account == "" {
		return false
	}
	b.name.Store(&id)
	return true
}

// PlanID is the identifier of a plan: that of the job, and a digest of all else that its file asks for, such as the
// budget and the audits.
func (b *CompiledJob) PlanID() string {
	sum := sha256.Sum256(b.Job.Canonical())
	return b.JobID() + "-" + hex.EncodeToString(sum[:4])
}

// Names names the operators and parameters that the disputes of the job are about.
func (b *CompiledJob) Names() dispute.Names { return question.Names(b.Spec, b.Step) }
