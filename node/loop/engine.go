package loop

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/compute/model/tokenloss"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/schedule"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/loop/curve"
	"github.com/starling-network/starling/node/loop/order"
	"github.com/starling-network/starling/node/loop/record"
	"github.com/starling-network/starling/node/trainer"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker"
)

// patience is how long the result of a pass waits for the step that it is computed with.
const patience = 3 * time.Second

// Options are those of an Engine.
type Options struct {
	order.Shape
	Terms
	Kept   int   // runs that are over whose blobs are kept: the latest
	Data   int64 // bytes that the data of all runs may take on the disk
	Ledger Ledger
	Log    *slog.Logger
}

// Ledger holds tokens to their limits.
type Ledger interface {
	// Reserve counts the budget of an order against the limit of a caller, or says why that cannot be.
	Reserve(by access.Caller, order string, budget uint64) error
	// Note counts an order of a token without looking at its limit: its budget, or what was spent of it.
	Note(token, order string, budget uint64, spent *uint64)
}

// Engine is a tinker.Engine whose steps a network takes, each model in a run of its own. Its other work is that of the
// trainer.
type Engine struct {
	*trainer.Trainer
	ctx      context.Context // of the process: sessions outlive requests
	account  *account.Account
	options  Options
	models   map[string]*model
	shelf    *shelf
	patience time.Duration

	mu sync.Mutex // of the trainer and of the list of models; what is in a model is for one goroutine
}

// model is a model that is trained.
type model struct {
	passes  []*pass // since the last step
	lost    bool    // a pass since then was refused: its gradients are missing
	session *Session
	before  string // order of the run that ended, and has the weights in its folder; "": another one has them
	loaded  *tinker.Path
	state   bool // of the optimizer was loaded, too
}

// pass is a pass with gradients, which the network computes with the next step.
type pass struct {
	model string
	data  []tinker.Datum
	loss  tinker.Loss
	taken chan struct{} // closed when a step has taken it
	done  chan struct{} // closed when one of the next two is there
	pass  *tinker.Pass
	err   error
	here  [][]float32 // log-probabilities that this machine has computed for a client that waits; nil: none
}

// New returns an engine that orders from an account until ctx ends, for models that begin as those of a trainer. It
// ends what a process before it could not end.
func New(ctx context.Context, t *trainer.Trainer, a *account.Account, o Options) (*Engine, error) {
	h := &shelf{dir: Folder(a), account: a, options: o, held: map[string]*Session{}}
	e := &Engine{Trainer: t, ctx: ctx, account: a, options: o, models: map[string]*model{}, shelf: h, patience: patience}
	return e, h.restore(ctx)
}

// Notice is for the clients of a server with such an engine.
const Notice = "steps are computed by the workers of a network, audited and paid; forward, sample and saved weights " +
	"are computed on the machine of this server. A result of forward_backward comes with its optim_step"

// Create implements tinker.Engine.
func (e *Engine) Create(name string, c tinker.Create) error {
	version, err := order.Numerics(e.ctx, e.account.Chain)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	trainer.Follow(e.Trainer, version)
	if err := e.Trainer.Create(name, c); err != nil {
		return err
	}
	e.models[name] = &model{}
	return nil
}

// Unload implements tinker.Engine. It ends the run of the model.
func (e *Engine) Unload(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(name)
	delete(e.models, name)
	e.Trainer.Unload(name)
	if err := os.Remove(e.shelf.modelFile(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		e.options.Log.Warn("the run of a model stays named", "model", name, "err", err)
	}
	e.shelf.trim()
}

// Forward implements tinker.Engine.
func (e *Engine) Forward(name string, data []tinker.Datum) (*tinker.Pass, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Trainer.Forward(name, data)
}

// Sample implements tinker.Engine.
func (e *Engine) Sample(from *tinker.Path, s tinker.Sample) (*tinker.Sampled, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Trainer.Sample(from, s)
}

// Save implements tinker.Engine.
func (e *Engine) Save(name string, p tinker.Path, lasting bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Trainer.Save(name, p, lasting)
}

// forget ends the run of a model, and gives its passes up.
func (e *Engine) forget(name string) {
	m := e.models[name]
	if m == nil {
		return
	}
	m.settle(failure.New(http.StatusConflict, "PASS_GIVEN_UP", "the model was unloaded, or has other weights by now",
		"send the batch again"))
	if m.session != nil {
		m.session.End(e.ctx)
	}
	m.session, m.before, m.lost = nil, "", false
}

// Load implements tinker.Engine. The next step begins another run.
func (e *Engine) Load(name string, p tinker.Path, optimizer bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.Trainer.Load(name, p, optimizer); err != nil {
		return err
	}
	e.forget(name)
	m := e.models[name]
	m.loaded, m.state = &p, optimizer
	return e.shelf.write(name, record.Model{Loaded: &p, Optimizer: optimizer})
}

// Backward implements tinker.Engine. The network computes the pass with the next step.
func (e *Engine) Backward(name string, data []tinker.Datum, l tinker.Loss) (*tinker.Pass, error) {
	m, _, err := e.find(name)
	if err != nil {
		return nil, err
	}
	if err := order.Fits(slices.Concat(m.data(), data), m.shape(e.options.Shape)); err != nil {
		m.lost = true
		return nil, err
	}
	p := &pass{model: name, data: data, loss: l, done: make(chan struct{}), taken: make(chan struct{})}
	m.passes = append(m.passes, p)
	return &tinker.Pass{Later: func() (*tinker.Pass, error) { return e.wait(p) }}, nil
}

// find finds a model and its state.
func (e *Engine) find(name string) (*model, trainer.State, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := trainer.StateOf(e.Trainer, name)
	return e.models[name], s, err
}

// shape bounds the steps of a model; fallback those of one without a run.
func (m *model) shape(fallback order.Shape) order.Shape {
	if m.session != nil {
		return m.session.work.Shape
	}
	return fallback
}

// wait returns the result of a pass. For a client that waits for it before it asks for the step, the log-probabilities
// are computed here: they are what the network is to find, to the bit.
func (e *Engine) wait(p *pass) (*tinker.Pass, error) {
	timer := time.NewTimer(e.patience)
	defer timer.Stop()
	select {
	case <-p.taken:
	case <-p.done:
	case <-timer.C:
		if ahead, err := e.ahead(p); ahead != nil || err != nil {
			return ahead, err
		}
	case <-e.ctx.Done():
		return nil, e.ctx.Err()
	}
	select {
	case <-p.done:
		return p.pass, p.err
	case <-e.ctx.Done():
		return nil, e.ctx.Err()
	}
}

// ahead computes a pass without its gradients; nil: a step has taken it meanwhile, or it was given up.
func (e *Engine) ahead(p *pass) (*tinker.Pass, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-p.taken:
		return nil, nil
	case <-p.done:
		return nil, nil
	default:
	}
	forward, err := e.Trainer.Forward(p.model, p.data)
	if err != nil {
		return nil, err
	}
	p.here = forward.LogProbs
	return replied(p, forward.LogProbs), nil
}

// settle ends all passes of a model with an error; nil: they have results.
func (m *model) settle(err error) {
	for _, p := range m.passes {
		p.err = err
		close(p.done)
	}
	m.passes = nil
}

// Step implements tinker.Engine. The first step of a model orders its run.
func (e *Engine) Step(name string, a tinker.Step) (metrics map[string]float64, err error) {
	m, s, err := e.find(name)
	if err != nil {
		return nil, err
	}
	defer func() { m.settle(err) }()
	if err := m.ready(a); err != nil {
		return nil, err
	}
	if metrics, err = e.repeated(name, m, s, a); metrics != nil || err != nil {
		return metrics, err
	}
	if m.session == nil || !m.session.had(a.ID, m.latest(m.session, a.Adam)) {
		if err := e.shelf.room(m.shape(e.options.Shape)); err != nil {
			return nil, err
		}
	}
	m.take()
	if m.session == nil {
		if err := e.begin(name, m, s, a); err != nil {
			return nil, err
		}
	}
	r := &m.session.record
	data := m.tensors(m.session.work.Shape, r.First+uint32(len(r.Fed)), a.Adam)
	if m.session.pending() {
		data = m.latest(m.session, a.Adam)
	}
	out, err := m.session.Step(e.ctx, a.ID, data)
	if err != nil {
		return nil, e.failed(m, err)
	}
	return e.learnt(name, m, s, m.session, a, out)
}

// repeated is the step of a run that ended, if the same one is asked for: the network has taken it, and was paid. It is
// nil for another step, and for one that was not taken.
func (e *Engine) repeated(name string, m *model, s trainer.State, a tinker.Step) (map[string]float64, error) {
	if m.session != nil || m.before == "" {
		return nil, nil
	}
	ended := e.shelf.session(m.before)
	if ended == nil || !ended.had(a.ID, m.latest(ended, a.Adam)) {
		return nil, nil
	}
	c, err := ended.came(e.ctx)
	switch known := (*failure.Error)(nil); {
	case errors.As(err, &known) || e.ctx.Err() != nil:
		return nil, cmp.Or(err, e.ctx.Err())
	case err != nil:
		return nil, failure.New(http.StatusConflict, "STEP_PAID", "the run took this step before it ended, and its "+
			"checkpoint cannot be fetched: "+err.Error(), "send the batch and the step again later, or another batch: the "+
			"next run begins before this step")
	case c == nil:
		return nil, nil
	}
	m.take()
	return e.learnt(name, m, s, ended, a, &Outcome{Checkpoint: c})
}

// latest are the data of the passes of a model as the latest step of a session would have them; nil: they do not fit.
func (m *model) latest(s *Session, a tinker.Adam) map[string]*tensor.Tensor {
	if !s.pending() || order.Fits(m.data(), s.record.Shape) != nil {
		return nil
	}
	return m.tensors(s.record.Shape, s.record.First+uint32(len(s.record.Fed))-1, a)
}

// data are those of all passes since the last step.
func (m *model) data() (all []tinker.Datum) {
	for _, p := range m.passes {
		all = append(all, p.data...)
	}
	return all
}

// take says that a step has taken the passes of a model.
func (m *model) take() {
	for _, p := range m.passes {
		close(p.taken)
	}
}

// learnt gives a model the outcome of a step of a session, and its passes their results.
func (e *Engine) learnt(name string, m *model, s trainer.State, of *Session, a tinker.Step, out *Outcome) (
	map[string]float64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.adopt(name, s, of, out.Checkpoint); err != nil {
		return nil, err
	}
	named := order.Named(out.Checkpoint)
	differ := e.reply(m, of.record.Length, named[tokenloss.High].F32(), named[tokenloss.Low].F32())
	if differ > 0 {
		e.options.Log.Warn("the network has other log-probabilities than this machine; an audit decides",
			"job", of.ID, "round", out.Checkpoint.Round, "targets", differ)
	}
	if err := m.note(of, out.Checkpoint.Round, a.Rate); err != nil {
		e.options.Log.Warn("the metrics of a step are not kept", "job", of.ID, "err", err)
	}
	return map[string]float64{"round": float64(out.Checkpoint.Round), "blocks": float64(out.Blocks),
		"steps_done_again": float64(out.Redone), "targets_that_differ": float64(differ)}, nil
}

// ready reports why a step cannot be taken now.
func (m *model) ready(a tinker.Step) error {
	switch {
	case m.lost:
		m.lost = false
		return failure.New(http.StatusConflict, "GRADIENTS_LOST",
			"a forward_backward before this step was refused; the gradients of the others are dropped, and no weight moved",
			"send the whole batch again, then the step")
	case len(m.passes) == 0:
		return failure.New(http.StatusConflict, "NO_GRADIENTS", "no forward_backward came before this step",
			"send a batch first")
	case m.session != nil && trainer.AdamW(a.Adam) != m.session.work.Adam:
		return failure.New(http.StatusConflict, "OPTIMIZER_FIXED", "betas, eps, weight decay and clipping are those "+
			"of the first step of a run", "change the learning rate alone, or save, and load into another model")
	}
	return nil
}

// adopt gives a model, which has a state, the weights and the moments of a checkpoint of its run.
func (e *Engine) adopt(name string, s trainer.State, from *Session, c *train.Checkpoint) error {
	named := order.Named(c)
	next := trainer.State{Trained: map[string]*tensor.Tensor{}, First: map[string]*tensor.Tensor{},
		Second: map[string]*tensor.Tensor{}, Steps: from.record.First + c.Round, Numerics: from.record.Numerics}
	for _, n := range tokenloss.Trained(s.Config) {
		next.Trained[n.Name] = named[n.Name]
		next.First[n.Name], next.Second[n.Name] = named[tokenloss.FirstOf+n.Name], named[tokenloss.SecondOf+n.Name]
	}
	return trainer.Adopt(e.Trainer, name, next)
}

// begin orders the run of a model, in the version of the numerics that is in force.
func (e *Engine) begin(name string, m *model, s trainer.State, a tinker.Step) error {
	version, err := order.Numerics(e.ctx, e.account.Chain)
	if err != nil {
		return err
	}
	if err := order.Funded(e.ctx, e.account.Chain, e.options.Budget); err != nil {
		return err
	}
	w, err := order.Compile(s, trainer.AdamW(a.Adam), e.options.Shape, version)
	if err != nil {
		return failure.New(http.StatusBadRequest, "INVALID_VALUE", "the network cannot take such steps: "+err.Error(),
			"change the value that is named, or start the server for fewer or shorter sequences of a step")
	}
	begun, err := Begin(e.ctx, e.account, w, e.options, a.By, s.Steps, func(order string) error {
		return e.shelf.write(name, record.Model{Order: order})
	})
	switch known := (*failure.Error)(nil); {
	case errors.As(err, &known):
		return err
	case order.NoRoom(err) != nil:
		return errors.Join(order.NoRoom(err), e.unnamed(name, m))
	case err != nil:
		return errors.Join(failure.New(http.StatusBadGateway, "ORDER_REFUSED",
			"the order of the run was refused: "+err.Error(), "see docs/serving.md"), e.unnamed(name, m))
	}
	e.shelf.hold(begun)
	m.session, m.before, m.loaded = begun, "", nil
	e.options.Log.Info("ordered", "job", m.session.ID)
	return e.follow(name, m, s, version)
}

// unnamed has the folder name what a model had before an order that was refused.
func (e *Engine) unnamed(name string, m *model) error {
	return e.shelf.write(name, record.Model{Order: m.before, Loaded: m.loaded, Optimizer: m.state})
}

// follow has the trainer compute in the version of the numerics of a run that begins. Log-probabilities that it found
// in another one are not compared.
func (e *Engine) follow(name string, m *model, s trainer.State, version uint32) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if trainer.Follow(e.Trainer, version) || s.Numerics != 0 && s.Numerics != version {
		for _, p := range m.passes {
			p.here = nil
		}
	}
	s.Numerics = version
	return trainer.Adopt(e.Trainer, name, s)
}

// failed is an error of a session for clients. A session that is over is let go; the model has the weights in its
// folder until another one begins.
func (e *Engine) failed(m *model, err error) error {
	if ended := (*EndedError)(nil); errors.As(err, &ended) {
		m.session.End(e.ctx)
		m.session, m.before = nil, m.session.ID
		return failure.New(http.StatusConflict, "RUN_ENDED", ended.Error(),
			"send the batch and the step again: the next run begins from the weights of the last step that is here")
	}
	return cmp.Or(order.NoRoom(err), err)
}

// tensors are the data of a step, as tokenloss.Given lists them. Sequences that are missing have no loss.
func (m *model) tensors(shape order.Shape, steps uint32, a tinker.Adam) map[string]*tensor.Tensor {
	in, row := tokenloss.Data(shape.Rows, shape.Length), 0
	for _, p := range m.passes {
		f := trainer.FunctionOf(p.loss)
		least, most := f.Bounds()
		for _, d := range p.data {
			at := row * shape.Length
			trainer.Put(in, at, d)
			for k := range d.Advantages {
				in[tokenloss.Ratio].F32()[at+k] = 1
				in[tokenloss.Least].F32()[at+k], in[tokenloss.Most].F32()[at+k] = least, most
			}
			row++
		}
	}
	in[tokenloss.Rate].F32()[0] = float32(a.Rate)
	in[tokenloss.C1].F32()[0] = schedule.Correction(a.Beta1, steps+1)
	in[tokenloss.C2].F32()[0] = schedule.Correction(a.Beta2, steps+1)
	return in
}

// reply gives passes their log-probabilities, and the losses that follow from these. It returns how many
// log-probabilities are others than this machine has found.
func (e *Engine) reply(m *model, length int, high, low []float32) (differ int) {
	row := 0
	for _, p := range m.passes {
		var all [][]float32
		for i, d := range p.data {
			logs := make([]float32, len(d.Tokens))
			for k := range logs {
				at := row*length + k
				logs[k] = tokenloss.LogProb(high[at], low[at])
				if p.here != nil && math.Abs(float64(logs[k]-p.here[i][k])) > tokenloss.LogError {
					differ++
				}
			}
			all = append(all, logs)
			row++
		}
		p.pass = replied(p, all)
	}
	return differ
}

// note writes the loss of a step into the folder of its run.
func (m *model) note(of *Session, round uint32, rate float64) error {
	var sum float64
	var targets int
	for _, p := range m.passes {
		sum += p.pass.Loss
		for _, d := range p.data {
			for _, w := range d.Weights {
				if w != 0 {
					targets++
				}
			}
		}
	}
	s := of.record.Shape
	return curve.Note(of.dir, curve.Step{Round: round, Loss: sum / float64(max(1, targets)), Rate: rate,
		Tokens: s.Rows * s.Length, Time: time.Now().UTC()})
}

// replied is a pass with log-probabilities, and the loss that follows from these.
func replied(p *pass, logs [][]float32) *tinker.Pass {
	f, r := trainer.FunctionOf(p.loss), &tinker.Pass{LogProbs: logs, Backward: true}
	for i, d := range p.data {
		for k, x := range logs[i] {
			r.Loss += order.Loss(f, d, k, float64(x))
		}
	}
	return r
}
