package pipeline

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/asynchronous"
	"github.com/starling-network/starling/compute/stages/boundary"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/stages/skipping"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/pipeline"
)

// unit is the unit that is computed, of the first round.
const unit = 1

// size is a model and its batch.
type size struct {
	family                       string // gpt2 or llama
	tied                         bool
	layers, width, length        int
	sequences, microbatch, steps int
	sent                         boundary.Scheme // of values between stages
	text                         string

	late        int  // steps by which the first stage is late; 0: stages wait for each other
	uncorrected bool // the optimizer does not correct late gradients

	skip float64 // share of the stages that microbatches leave out
}

// job is a model that is cut into stages.
type job struct {
	task    *train.Task
	base    *train.Checkpoint
	weights map[string]*tensor.Tensor
	before  []int
	plan    *stages.Plan
}

// newJob makes a job of made-up text, cut into n stages.
func newJob(z size, n, threads int) (*job, error) {
	keys := map[string]any{"n_layer": z.layers, "n_embd": z.width, "n_head": z.width / 8, "n_positions": z.length,
		"vocab_size": 256, "tie_word_embeddings": z.tied}
	if z.family == "llama" {
		keys = map[string]any{"num_hidden_layers": z.layers, "hidden_size": z.width, "num_attention_heads": z.width / 8,
			"num_key_value_heads": z.width / 16, "intermediate_size": 3 * z.width, "max_position_embeddings": z.length,
			"vocab_size": 256}
	}
	c, err := architecture.Parse(z.family, keys)
	if err != nil {
		return nil, err
	}
	loss, err := model.LanguageOf(c, model.Batch{Sequences: z.sequences, Length: z.length, Micro: z.microbatch})
	if err != nil {
		return nil, err
	}
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 0.5,
		Nesterov: z.late > 0 && !z.uncorrected}
	step, err := loss.TrainStep(o)
	if err != nil {
		return nil, err
	}
	costs, err := stages.Costs(step)
	if err != nil {
		return nil, err
	}
	before, err := stages.Balance(costs, slices.Repeat([]int{1}, n))
	if z.skip > 0 {
		step, before, err = skipping.Step(c, loss, o, costs, n, z.sequences/z.microbatch, z.skip)
	}
	if err != nil {
		return nil, err
	}
	if step, err = boundary.Compress(step, before, z.sent); err != nil {
		return nil, err
	}
	if z.late > 0 {
		if step, err = asynchronous.Step(loss, o, step, before, z.late); err != nil {
			return nil, err
		}
	}
	text := cmp.Or(z.text, strings.Repeat("the quick brown fox jumps over the lazy dog; ", 1000))
	corpus, err := data.Build([]source.File{{Format: "text", Name: "fox", Data: []byte(text)}}, tokenizer.Bytes(), 0.1)
	if err != nil {
		return nil, err
	}
	j := &job{weights: c.Init(7), before: before}
	j.task = &train.Task{Step: step, Corpus: corpus, Spec: &train.Spec{
		Version: 1, Numerics: step.Numerics, Name: "fox", Seed: 7, Program: step.Digest(),
		Data: corpus.Manifest(bundle.ShardTokens).Digest(), Rounds: 2, Steps: uint32(z.steps),
		Segment: uint32((z.steps + 63) / 64), Units: 2,
		Batch: uint32(z.sequences), Length: uint32(z.length),
		Rate: train.Rate{Kind: train.Cosine, Peak: 3e-3, Warmup: 2, Floor: 0.1}, Beta1: o.Beta1, Beta2: 0.95,
		Exchange: train.Exchange{Codec: "fp32", Rule: "mean", Outer: "nesterov", Rate: 0.7, Momentum: 0.9},
	}}
	if j.task.Exec, err = cpu.Compile(step, threads); err != nil {
		return nil, err
	}
	if j.base, err = train.Genesis(train.Params(step), j.weights, 1); err != nil {
		return nil, err
	}
	j.plan, err = stages.Cut(step, before)
	return j, err
}

// hub carries the messages of one replica, as bytes, until all stages are at their end or wait.
type hub struct {
	mu     sync.Mutex
	moved  sync.Cond
	queues map[[2]int][][]byte
	waits  map[int][2]int // by stage that waits: for which queue
	ended  int            // stages at their end
	stages int

	log     map[[2]int][]sent // of all messages; nil: none is kept
	words   map[[2]int]uint32 // of receivers that were sent, if messages are kept
	restart func()            // is called once, when nothing moves any more
}

// sent is a message that was sent, of a step; its sender keeps it for a receiver that restarts.
type sent struct {
	step  uint32
	bytes []byte
}

func newHub(n int) *hub {
	h := &hub{queues: map[[2]int][][]byte{}, waits: map[int][2]int{}, stages: n}
	h.moved.L = &h.mu
	return h
}

// end notes that a stage is at its end.
func (h *hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended++
	h.moved.Broadcast()
}

// quiet reports whether nothing moves any more.
func (h *hub) quiet() bool {
	for _, at := range h.waits {
		if len(h.queues[at]) > 0 {
			return false
		}
	}
	return len(h.waits)+h.ended == h.stages
}

// change changes what a stage sends; false: it sends nothing any more.
type change func(from, to int, m *pipeline.Message) bool

// line is the end of one stage at a hub.
type line struct {
	*hub
	plan   *stages.Plan
	stage  int
	change change // nil: what is sent arrives
}

var (
	errStops   = errors.New("the stage stops")
	errNothing = errors.New("nothing comes any more")
)

// Send implements pipeline.Transport.
func (l *line) Send(to int, m pipeline.Message) error {
	if l.change != nil && !l.change(l.stage, to, &m) {
		return errStops
	}
	var b bytes.Buffer
	if err := pipeline.WriteMessage(&b, m); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := [2]int{l.stage, to}
	l.queues[at] = append(l.queues[at], b.Bytes())
	if l.log != nil {
		step := l.words[at] // a receiver gives its word once a step
		if m.Frame != nil {
			step = m.Frame.Step
		} else {
			l.words[at]++
		}
		l.log[at] = append(l.log[at], sent{step, b.Bytes()})
	}
	l.moved.Broadcast()
	return nil
}

// Receive implements pipeline.Transport.
func (l *line) Receive(from int) (m pipeline.Message, err error) {
	b, err := l.next(from)
	if err != nil {
		return m, err
	}
	return pipeline.ReadMessage(bytes.NewReader(b), l.plan, from, l.stage)
}

func (l *line) next(from int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := [2]int{from, l.stage}
	l.waits[l.stage] = at
	l.moved.Broadcast()
	defer delete(l.waits, l.stage)
	for len(l.queues[at]) == 0 {
		if !l.quiet() {
			l.moved.Wait()
			continue
		}
		if l.restart == nil {
			return nil, errNothing
		}
		l.restart()
		l.restart = nil
	}
	b := l.queues[at][0]
	l.queues[at] = l.queues[at][1:]
	return b, nil
}

// played is what came of a unit of all stages. Lists are by stage.
type played struct {
	units     []*pipeline.Unit
	results   []*pipeline.Result
	errs      []error
	exchanged [][][]pipeline.Exchange                // by step
	received  []map[uint32]map[string]*tensor.Tensor // by step and name in the program of the stage

	all sync.WaitGroup // of the stages
}

// key is that of the holder of a stage.
func key(stage int) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(slices.Repeat([]byte{byte(stage + 1)}, 32))
}

// holders hold the stages of a replica.
func holders(n int) (list []pipeline.Holder) {
	for s := range n {
		public := key(s).Public().(ed25519.PublicKey)
		list = append(list, pipeline.Holder{Account: "holder of stage " + string(rune('0'+s)),
			Verify: func(statement, signature []byte) bool { return ed25519.Verify(public, statement, signature) }})
	}
	return list
}

// play computes the unit in stages, each a goroutine with one thread. Liars have plans of their own. With keep, what
// stages receive is kept.
func (j *job) play(liars map[int]*stages.Plan, changed change, keep bool) *played {
	return j.playAt(newHub(len(j.plan.Stages)), &played{}, liars, changed, keep)
}

// playAt is play at a hub, which may restart a stage.
func (j *job) playAt(h *hub, p *played, liars map[int]*stages.Plan, changed change, keep bool) *played {
	n := len(j.plan.Stages)
	*p = played{units: make([]*pipeline.Unit, n), results: make([]*pipeline.Result, n), errs: make([]error, n),
		exchanged: make([][][]pipeline.Exchange, n), received: make([]map[uint32]map[string]*tensor.Tensor, n)}
	all := &p.all
	for s := range n {
		plan := j.plan
		if own, ok := liars[s]; ok {
			plan = own
		}
		p.units[s] = j.unit(p, plan, s, &line{hub: h, plan: plan, stage: s, change: changed}, keep)
		all.Go(func() {
			defer h.end()
			p.results[s], p.errs[s] = p.units[s].Run(j.weights)
		})
	}
	all.Wait()
	return p
}

// unit is the unit of one stage.
func (j *job) unit(p *played, plan *stages.Plan, s int, moves *line, keep bool) *pipeline.Unit {
	u := &pipeline.Unit{Stage: s, Spec: j.task.Spec, Corpus: j.task.Corpus, Threads: 1, Moves: moves,
		Replica: &pipeline.Replica{Job: j.task.Spec.Digest(), Number: unit, Plan: plan,
			Orders: plan.Orders(), Holders: holders(len(plan.Stages))},
		Sign: func(b []byte) []byte { return ed25519.Sign(key(s), b) }}
	if keep {
		if p.received[s] == nil {
			p.received[s] = map[uint32]map[string]*tensor.Tensor{}
		}
		u.Keep = func(from int, f pass.Frame) error { return p.keep(plan, from, s, f) }
		u.Exchanged = func(x []pipeline.Exchange) { p.exchanged[s] = append(p.exchanged[s], x) }
	}
	return u
}

// keep keeps the values of a frame.
func (p *played) keep(plan *stages.Plan, from, to int, f pass.Frame) error {
	step := p.received[to][f.Step]
	if step == nil {
		step = map[string]*tensor.Tensor{}
		p.received[to][f.Step] = step
	}
	for i, t := range plan.Frame(from, to, f.Task) {
		step[parts.Received+strings.TrimPrefix(t.Name(), parts.Exchanged)] = f.Values[i].Clone()
	}
	return nil
}

// checkpoint is the part of the checkpoint that a stage holds.
func (j *job) checkpoint(stage int) (*train.Checkpoint, error) {
	return train.Genesis(train.Params(j.plan.Stages[stage].Whole), j.weights, 1)
}

// alone is the task of a verifier that executes the unit of one stage again, from the values that the stage received.
func (j *job) alone(p *played, plan *stages.Plan, stage int) (*train.Task, *train.Checkpoint, error) {
	whole := plan.Stages[stage].Whole
	exec, err := cpu.Compile(whole, 1)
	if err != nil {
		return nil, nil, err
	}
	base, err := j.checkpoint(stage)
	return &train.Task{Spec: j.task.Spec, Step: whole, Exec: exec, Corpus: j.task.Corpus,
		Received: func(_, _, step uint32) (map[string]*tensor.Tensor, error) { return p.received[stage][step], nil },
	}, base, err
}

// again are the roots of the states of the unit of a stage, executed again.
func (j *job) again(p *played, stage int) ([]canon.Digest, error) {
	task, base, err := j.alone(p, j.plan, stage)
	if err != nil {
		return nil, err
	}
	r, err := task.RunTo(base, unit, task.Spec.Segments(), nil, nil)
	if err != nil {
		return nil, err
	}
	return r.Segments, nil
}
