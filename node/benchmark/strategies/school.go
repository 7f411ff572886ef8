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
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/machine"
	"github.com/starling-network/starling/role/bundle"
)

// school trains one small model by several strategies, on one text: units, updates and checkpoints are made as in a
// job.
type school struct {
	config         model.Config
	corpus, turned *data.Corpus // turned: with other labels, for hostile workers
	batch, length  int
	abreast        int // lessons at once, each on one thread
	notes          *notebook
}

// Of AdamW, in every lesson.
const (
	decay = 0.1
	clip  = 1
)

// newSchool makes a GPT-2 of bytes.
func newSchool(text []byte, layers, width, batch, length, abreast int) (*school, error) {
	config, err := model.Parse(model.GPT2,
		map[string]any{"n_layer": layers, "n_embd": width, "n_head": 4, "n_positions": length, "vocab_size": 256})
	if err != nil {
		return nil, err
	}
	s := &school{config: config, batch: batch, length: length, abreast: abreast}
	other := make([]byte, len(text))
	for i, b := range text {
		other[i] = 255 - b
	}
	for t, c := range map[*[]byte]**data.Corpus{&text: &s.corpus, &other: &s.turned} {
		if *c, err = data.Build([]data.Source{{Format: "text", Name: "text", Data: *t}}, tokenizer.Bytes(), 0.1); err != nil {
			return nil, fmt.Errorf("%w: the text: %w", benchmark.ErrFile, err)
		}
	}
	return s, nil
}

// lesson is a run of a school.
type lesson struct {
	name          string
	exchange      train.Exchange
	rate          float64 // at its peak, of inner steps
	beta          float64 // of their second moments; 0: the usual
	proximal      float64 // pull of where a unit began; 0: none
	pupils        pupils
	units         int
	steps, rounds int       // steps of a whole unit
	paces         []float64 // of the machines that units are made for; nil: all are whole
	seed          uint64
	flipped       int     // of the last units read turned text
	attack        *attack // of the last units on the others; nil: none
}

// pupils are how a lesson is taken.
type pupils string

const (
	inUnits  pupils = ""         // as jobs do it
	parallel pupils = "parallel" // data-parallel training in as many steps on the same tokens
)

// optimizer of the inner steps. Where units are gradients there is none.
func (l lesson) optimizer() optimizer.AdamW {
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

// task makes the uncompiled task of a lesson. Where units have different sizes there are more rounds, so that the
// number of tokens is the same.
func (s *school) task(l lesson) (*train.Task, *train.Checkpoint, error) {
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
		Version: 1, Numerics: kernel.Version, Name: "school", Seed: l.seed, Program: step.Digest(),
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
	if l.paces != nil {
		spec.Sizes, _ = outer.Sizes(spec.Steps, l.paces)
		spec.Segment = spec.Steps / slices.Max(spec.Sizes)
		spec.Rounds = uint32(uint64(spec.Rounds) * uint64(spec.Units*spec.Steps) / spec.StepsBefore(spec.Units))
	}
	return &train.Task{Spec: spec, Step: step, Corpus: s.corpus}, genesis,
		errors.Join(spec.Check(), outer.Check(l.exchange))
}

// left are the lessons that are not among the runs that are kept.
func (s *school) left(lessons []lesson) (left []lesson, err error) {
	for _, l := range lessons {
		task, _, err := s.task(l)
		if err != nil {
			return nil, err
		}
		if _, ok := s.notes.look(l.key(task)); !ok {
			left = append(left, l)
		}
	}
	return left, nil
}

// teach runs lessons, several at once, except those that could begin only after the limit, and reports each one that
// is over.
func (s *school) teach(ctx context.Context, lessons []lesson, tell func(r Run, over, all int)) error {
	class, ctx := errgroup.WithContext(ctx)
	class.SetLimit(s.abreast)
	var telling sync.Mutex
	over := 0
	for _, l := range lessons {
		class.Go(func() error {
			r, err := s.learn(ctx, l)
			if errors.Is(err, errLater) {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			telling.Lock()
			defer telling.Unlock()
			if over++; tell != nil {
				tell(r, over, len(lessons))
			}
			return nil
		})
	}
	return class.Wait()
}

// key is a digest of all that the result of a lesson depends on.
func (l lesson) key(task *train.Task) string {
	besides := fmt.Sprint(l.pupils, l.flipped, examined)
	if l.attack != nil {
		besides += l.attack.name
	}
	return canon.Sum("starling/bench/lesson/1", task.Spec.Encode(), []byte(besides)).String()
}

// known returns the losses of a lesson with the first seeds, as far as they are known, and the bytes of the updates
// of one unit.
func (s *school) known(l lesson, seeds int) (losses []float64, sent int64, err error) {
	for seed := range uint64(seeds) {
		l.seed = seed + 1
		task, _, err := s.task(l)
		if err != nil {
			return nil, 0, err
		}
		if run, ok := s.notes.look(l.key(task)); ok {
			losses, sent = append(losses, run.loss()), run.Bytes
		}
	}
	return losses, sent, nil
}

// learn is a lesson, unless it is among the runs that are kept.
func (s *school) learn(ctx context.Context, l lesson) (Run, error) {
	task, base, err := s.task(l)
	if err != nil {
		return Run{}, err
	}
	return s.notes.do(Run{Key: l.key(task), Name: l.name, Seed: l.seed}, func() (float64, int64, error) {
		if task.Exec, err = cpu.Compile(task.Step, 1); err != nil {
			return 0, 0, err
		}
		if l.pupils != parallel {
			return s.train(ctx, l, task, base)
		}
		loss, err := s.parallel(ctx, l, task, base)
		return loss, 4 * int64(s.config.Parameters()) * int64(l.steps*l.rounds), err
	})
}

// train returns the loss on held-out text, in nats a token, and the bytes of the updates of one unit. A model whose
// weights become NaN or infinite has an infinite loss.
func (s *school) train(ctx context.Context, l lesson, task *train.Task,
	base *train.Checkpoint) (loss float64, sent int64, err error) {
	other := *task
	other.Corpus = s.turned
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

// trainer takes the steps of a lesson with lasting moments, on batch sequences each.
func (s *school) trainer(l lesson, task *train.Task, batch int) (*machine.Trainer, error) {
	t, err := machine.NewTrainer(machine.Recipe{Config: s.config, Optimizer: l.optimizer(), Rate: l.rate, Batch: batch,
		Length:  s.length,
		Threads: 1}, s.config.Init(l.seed))
	if err != nil {
		return nil, err
	}
	t.Spec.Rate, t.Spec.Steps = task.Spec.Rate, task.Spec.Steps*task.Spec.Rounds
	return t, nil
}

// parallel is the loss of data-parallel training with moments that last, on the tokens of a lesson in as many steps.
func (s *school) parallel(ctx context.Context, l lesson, task *train.Task, base *train.Checkpoint) (float64, error) {
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

func (s *school) examine(task *train.Task, params []*tensor.Tensor) (float64, error) {
	meter, err := task.Evaluator()
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
