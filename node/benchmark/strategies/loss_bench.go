package strategies

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/meter"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/machine"
	"github.com/starling-network/starling/role/bundle"
)

// lossBench trains one small model by several strategies, on one text: units, updates and checkpoints are made as in a
// job.
type lossBench struct {
	config          architecture.Config
	corpus, flipped *data.Corpus // turned: with other labels, for hostile workers
	batch, length   int
	concurrency     int // runs at once, each on one thread
	cache           *resultsCache
}

// Of AdamW, in every run.
const (
	decay = 0.1
	clip  = 1
)

// newLossBench makes a GPT-2 of bytes.
func newLossBench(text []byte, layers, width, batch, length, concurrency int) (*lossBench, error) {
	config, err := architecture.Parse(architecture.GPT2,
		map[string]any{"n_layer": layers, "n_embd": width, "n_head": 4, "n_positions": length, "vocab_size": 256})
	if err != nil {
		return nil, err
	}
	s := &lossBench{config: config, batch: batch, length: length, concurrency: concurrency}
	other := make([]byte, len(text))
	for i, b := range text {
		other[i] = 255 - b
	}
	for t, c := range map[*[]byte]**data.Corpus{&text: &s.corpus, &other: &s.flipped} {
		if *c, err = data.Build([]source.File{{Format: "text", Name: "text", Data: *t}}, tokenizer.Bytes(), 0.1); err != nil {
			return nil, fmt.Errorf("%w: the text: %w", benchmark.ErrFile, err)
		}
	}
	return s, nil
}

// trainingRun is a run of a lossBench.
type trainingRun struct {
	name           string
	exchange       train.Exchange
	rate           float64 // at its peak, of inner steps
	beta           float64 // of their second moments; 0: the usual
	proximal       float64 // pull of where a unit began; 0: none
	mode           mode
	units          int
	steps, rounds  int       // steps of a whole unit
	relativeSpeeds []float64 // of the machines that units are made for; nil: all are whole
	seed           uint64
	flipped        int     // of the last units read turned text
	attack         *attack // of the last units on the others; nil: none
}

// mode is how a run trains.
type mode string

const (
	localSGD     mode = ""         // as jobs do it
	dataParallel mode = "parallel" // data-parallel training in as many steps on the same tokens
)

// optimizer of the inner steps. Where units are gradients there is none.
func (l trainingRun) optimizer() optimizer.AdamW {
	if l.exchange.Gradients {
		return optimizer.Descent
	}
	o := machine.AdamW(decay, clip)
	o.Proximal = l.proximal
	if l.beta > 0 {
		o.Beta2 = l.beta
	}
	return o
}

// task returns the task of a run, whose program is not compiled yet. A run whose units differ in size has more rounds,
// so that all runs train on the same number of tokens.
func (s *lossBench) task(l trainingRun) (*train.Task, *train.Checkpoint, error) {
	optimizer := l.optimizer()
	step, err := model.TrainStep(s.config, optimizer, s.batch, s.length)
	if err != nil {
		return nil, nil, err
	}
	genesis, err := outer.Genesis(l.exchange, train.Params(step), s.config.Init(l.seed))
	if err != nil {
		return nil, nil, err
	}
	spec := &train.Spec{
		Version: 1, Numerics: step.Numerics, Name: "school", Seed: l.seed, Program: step.Digest(),
		Data:    s.corpus.Manifest(bundle.ShardTokens).Digest(),
		Genesis: genesis.Root(), Rounds: uint32(l.rounds), Steps: uint32(l.steps), Segment: uint32(l.steps),
		Units: uint32(l.units),
		Batch: uint32(s.batch), Length: uint32(s.length),
		Rate:  train.Rate{Kind: train.Cosine, Peak: l.rate, Warmup: uint32(l.steps * l.rounds / 40), Floor: 0.1},
		Beta1: optimizer.Beta1, Beta2: optimizer.Beta2, Exchange: l.exchange,
	}
	if l.exchange.Gradients {
		spec.Beta1, spec.Beta2 = 0, 0
	}
	if l.relativeSpeeds != nil {
		spec.Sizes, _ = outer.Sizes(spec.Steps, l.relativeSpeeds)
		spec.Segment = spec.Steps / slices.Max(spec.Sizes)
		spec.Rounds = uint32(uint64(spec.Rounds) * uint64(spec.Units*spec.Steps) / spec.StepsBefore(spec.Units))
	}
	return &train.Task{Spec: spec, Step: step, Corpus: s.corpus}, genesis,
		errors.Join(spec.Check(), outer.Check(l.exchange))
}

// left are the runs whose results are not in the cache.
func (s *lossBench) left(runs []trainingRun) (left []trainingRun, err error) {
	for _, l := range runs {
		task, _, err := s.task(l)
		if err != nil {
			return nil, err
		}
		if _, ok := s.cache.get(l.key(task)); !ok {
			left = append(left, l)
		}
	}
	return left, nil
}

// runAll executes runs, several at once. It skips those that could begin only after the time limit of the cache, and
// reports each one that ends.
func (s *lossBench) runAll(ctx context.Context, runs []trainingRun, tell func(r Run, over, all int)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.concurrency)
	var telling sync.Mutex
	over := 0
	for _, l := range runs {
		group.Go(func() error {
			r, err := s.run(ctx, l)
			if errors.Is(err, errLater) {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			telling.Lock()
			defer telling.Unlock()
			if over++; tell != nil {
				tell(r, over, len(runs))
			}
			return nil
		})
	}
	return group.Wait()
}

// key is a digest of all that the result of a run depends on.
func (l trainingRun) key(task *train.Task) string {
	besides := fmt.Sprint(l.mode, l.flipped, examined)
	if l.attack != nil {
		besides += l.attack.name
	}
	return canon.Sum("starling/bench/lesson/1", task.Spec.Encode(), []byte(besides)).String()
}

// known returns the losses of a run that the cache has, of the seeds from 1 to seeds, and the bytes of all updates of
// one unit.
func (s *lossBench) known(l trainingRun, seeds int) (losses []float64, sent int64, err error) {
	for seed := range uint64(seeds) {
		l.seed = seed + 1
		task, _, err := s.task(l)
		if err != nil {
			return nil, 0, err
		}
		if run, ok := s.cache.get(l.key(task)); ok {
			losses, sent = append(losses, run.loss()), run.Bytes
		}
	}
	return losses, sent, nil
}

// run trains, unless the result is in the cache.
func (s *lossBench) run(ctx context.Context, l trainingRun) (Run, error) {
	task, base, err := s.task(l)
	if err != nil {
		return Run{}, err
	}
	return s.cache.do(Run{Key: l.key(task), Name: l.name, Seed: l.seed}, func() (float64, int64, error) {
		if task.Exec, err = cpu.Compile(task.Step, 1); err != nil {
			return 0, 0, err
		}
		if l.mode != dataParallel {
			return s.train(ctx, l, task, base)
		}
		loss, err := s.parallel(ctx, l, task, base)
		return loss, 4 * int64(s.config.Parameters()) * int64(l.steps*l.rounds), err
	})
}

// train returns the loss on held-out text, in nats a token, and the bytes of the updates of one unit. A model whose
// weights become NaN or infinite has an infinite loss.
func (s *lossBench) train(ctx context.Context, l trainingRun, task *train.Task,
	base *train.Checkpoint) (loss float64, sent int64, err error) {
	other := *task
	other.Corpus = s.flipped
	from := make([][]*tensor.Tensor, l.units)
	var waiting [][]*tensor.Tensor // updates that are in no checkpoint yet
	for round := range task.Spec.Rounds {
		deltas := make([][]*tensor.Tensor, l.units)
		for u := range uint32(l.units) {
			if err := ctx.Err(); err != nil {
				return 0, 0, err
			}
			t := task
			if int(u) >= l.units-l.flipped {
				t = &other
			}
			result, err := t.Run(base, u, from[u], nil)
			var diverged *train.DivergedError
			if errors.As(err, &diverged) {
				return math.Inf(1), sent, nil
			} else if err != nil {
				return 0, 0, err
			}
			update, on, err := outer.Commit(task.Spec, base.Names, round, u, result, from[u])
			if err != nil {
				return 0, 0, err
			}
			from[u] = on
			b := update.Encode()
			if u == 0 {
				sent += int64(len(b))
			}
			if deltas[u], err = outer.Unpack(task.Spec, base, base.Round, u, update.Root(), b); err != nil {
				return 0, 0, err
			}
		}
		if l.attack != nil {
			deltas = l.attack.on(deltas)
		}
		waiting = append(waiting, deltas...)
		n := len(task.Spec.Applied(round)) * l.units
		deltas, waiting = waiting[:n], waiting[n:]
		if base, err = outer.Advance(task.Spec, base, deltas); err != nil {
			return 0, 0, err
		}
	}
	loss, err = s.examine(task, base.Params)
	return loss, sent, err
}

// trainer takes the steps of a run whose moments outlast its rounds. A step reads batch sequences.
func (s *lossBench) trainer(l trainingRun, task *train.Task, batch int) (*machine.Trainer, error) {
	t, err := machine.NewTrainer(machine.Recipe{Config: s.config, Optimizer: l.optimizer(), Rate: l.rate, Batch: batch,
		Length:  s.length,
		Threads: 1}, s.config.Init(l.seed))
	if err != nil {
		return nil, err
	}
	t.Spec.Rate, t.Spec.Steps = task.Spec.Rate, task.Spec.Steps*task.Spec.Rounds
	return t, nil
}

// parallel is the loss of data-parallel training with moments that last, on the tokens of a run in as many steps.
func (s *lossBench) parallel(ctx context.Context, l trainingRun, task *train.Task,
	base *train.Checkpoint) (float64, error) {
	t, err := s.trainer(l, task, l.units*s.batch)
	if err != nil {
		return 0, err
	}
	each := s.batch * (s.length + 1)
	for step := range uint32(l.steps * l.rounds) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		for u := range l.units {
			at := task.Spec.Address(step/uint32(l.steps), uint32(u), step%uint32(l.steps))
			if err := s.corpus.Batch(t.Tokens()[u*each:(u+1)*each], at, s.length); err != nil {
				return 0, err
			}
		}
		if _, err := t.Step(); err != nil {
			return 0, err
		}
	}
	params := make([]*tensor.Tensor, len(base.Names))
	for i, n := range base.Names {
		params[i] = t.In[train.Param+n]
	}
	return s.examine(task, params)
}

// examined is how many batches a model is examined on.
const examined = 32

func (s *lossBench) examine(task *train.Task, params []*tensor.Tensor) (float64, error) {
	meter, err := meter.New(task)
	if err != nil {
		return 0, err
	}
	batches := s.corpus.ValBatches(s.batch, s.length, examined)
	if len(batches) == 0 {
		return 0, fmt.Errorf("%w: the text is too short to examine a model on", benchmark.ErrFile)
	}
	var sum float64
	for _, tokens := range batches {
		loss, err := meter.Loss(params, tokens)
		if err != nil {
			return 0, err
		}
		if loss-loss != 0 {
			return math.Inf(1), nil
		}
		sum += float64(loss)
	}
	return sum / float64(len(batches)), nil
}
