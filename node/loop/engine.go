package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/starling-network/starling/compute/model/tokenloss"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/schedule"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/trainer"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker"
)

// patience is how long the result of a pass waits for the step that it is computed with.
const patience = 3 * time.Second

// Options are those of an Engine.
type Options struct {
	Shape
	Terms
	Numerics uint32 // version in force on the network
	Log      *slog.Logger
}

// Engine is a tinker.Engine whose steps a network takes, each model in a run of its own. Its other work is that of the
// trainer.
type Engine struct {
	*trainer.Trainer
	ctx      context.Context // of the process: sessions outlive requests
	account  *account.Account
	options  Options
	models   map[string]*model
	patience time.Duration

	mu sync.Mutex // held while the trainer works
}

// model is a model that is trained.
type model struct {
	passes  []*pass // since the last step
	session *Session
	adam    optimizer.AdamW // of the session
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

// New returns an engine that orders from an account until ctx ends, for models that begin as those of a trainer.
func New(ctx context.Context, t *trainer.Trainer, a *account.Account, o Options) *Engine {
	return &Engine{Trainer: t, ctx: ctx, account: a, options: o, models: map[string]*model{},
		patience: patience}
}

// Notice is for the clients of a server with such an engine.
const Notice = "steps are computed by the workers of a network, audited and paid; forward, sample and saved weights " +
	"are computed on the machine of this server. A result of forward_backward comes with its optim_step"

// Create implements tinker.Engine.
func (e *Engine) Create(name string, c tinker.Create) error {
	e.mu.Lock()
	defer e.mu.Unlock()
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
	m.session = nil
}

// Load implements tinker.Engine. The next step begins another run.
func (e *Engine) Load(name string, p tinker.Path, optimizer bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.Trainer.Load(name, p, optimizer); err != nil {
		return err
	}
	e.forget(name)
	return nil
}

// Backward implements tinker.Engine. The network computes the pass with the next step.
func (e *Engine) Backward(name string, data []tinker.Datum, l tinker.Loss) (*tinker.Pass, error) {
	m := e.models[name]
	if m == nil {
		_, err := trainer.StateOf(e.Trainer, name)
		return nil, err
	}
	rows := len(data)
	for _, p := range m.passes {
		rows += len(p.data)
	}
	if rows > e.options.Rows {
		return nil, failure.New(http.StatusUnprocessableEntity, "BATCH_TOO_LARGE",
			fmt.Sprintf("the batches of a step have %d sequences, and the server was started for %d", rows, e.options.Rows),
			"send fewer sequences before optim_step, or start the server with a larger --rows")
	}
	p := &pass{model: name, data: data, loss: l, done: make(chan struct{}), taken: make(chan struct{})}
	m.passes = append(m.passes, p)
	return &tinker.Pass{Later: func() (*tinker.Pass, error) { return e.wait(p) }}, nil
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
func (e *Engine) Step(name string, a tinker.Adam) (metrics map[string]float64, err error) {
	s, err := trainer.StateOf(e.Trainer, name)
	if err != nil {
		return nil, err
	}
	m := e.models[name]
	if len(m.passes) == 0 {
		return nil, failure.New(http.StatusConflict, "NO_GRADIENTS", "no forward_backward came before this step",
			"send a batch first")
	}
	defer func() { m.settle(err) }()
	for _, p := range m.passes {
		close(p.taken)
	}
	if m.session != nil && trainer.AdamW(a) != m.adam {
		return nil, failure.New(http.StatusConflict, "OPTIMIZER_FIXED", "betas, eps, weight decay and clipping are those "+
			"of the first step of a run", "change the learning rate alone, or save, and load into another model")
	}
	if m.session == nil {
		if err := e.begin(m, s, trainer.AdamW(a)); err != nil {
			return nil, err
		}
	}
	out, err := m.session.Step(e.ctx, e.tensors(m.passes, s.Steps, a))
	if err != nil {
		return nil, e.failed(m, err)
	}
	named := Named(out.Checkpoint)
	next := trainer.State{Trained: map[string]*tensor.Tensor{}, First: map[string]*tensor.Tensor{},
		Second: map[string]*tensor.Tensor{}, Steps: s.Steps + 1}
	for _, n := range tokenloss.Trained(s.Config) {
		next.Trained[n.Name] = named[n.Name]
		next.First[n.Name], next.Second[n.Name] = named[tokenloss.FirstOf+n.Name], named[tokenloss.SecondOf+n.Name]
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := trainer.Adopt(e.Trainer, name, next); err != nil {
		return nil, err
	}
	differ := e.reply(m.passes, named[tokenloss.High].F32(), named[tokenloss.Low].F32())
	if differ > 0 {
		e.options.Log.Warn("the network has other log-probabilities than this machine; an audit decides",
			"job", m.session.ID, "round", out.Checkpoint.Round, "targets", differ)
	}
	return map[string]float64{"round": float64(out.Checkpoint.Round), "blocks": float64(out.Blocks),
		"steps_done_again": float64(out.Redone), "targets_that_differ": float64(differ)}, nil
}

// begin orders the run of a model.
func (e *Engine) begin(m *model, s trainer.State, a optimizer.AdamW) error {
	w, err := Compile(s, a, e.options.Shape, e.options.Numerics)
	if err != nil {
		return failure.New(http.StatusBadRequest, "INVALID_VALUE", "the network cannot take such steps: "+err.Error(),
			"change the value that is named, or start the server with fewer --rows or a smaller --context")
	}
	m.adam = a
	if m.session, err = Begin(e.ctx, e.account, w, e.options.Terms, e.options.Log); err != nil {
		return failure.New(http.StatusBadGateway, "ORDER_REFUSED", "the order of the run was refused: "+err.Error(),
			"see docs/serving.md")
	}
	e.options.Log.Info("ordered", "job", m.session.ID)
	return nil
}

// failed is an error of a session for clients. A session that is over is let go.
func (e *Engine) failed(m *model, err error) error {
	if ended := (*EndedError)(nil); errors.As(err, &ended) {
		m.session.End(e.ctx)
		m.session = nil
		return failure.New(http.StatusConflict, "RUN_ENDED", ended.Error(),
			"send the batch and the step again: the next run begins from the weights of the last step that is here")
	}
	return err
}

// tensors are the data of a step, as tokenloss.Given lists them. Sequences that are missing have no loss.
func (e *Engine) tensors(passes []*pass, steps uint32, a tinker.Adam) map[string]*tensor.Tensor {
	in, row := tokenloss.Data(e.options.Rows, e.options.Length), 0
	for _, p := range passes {
		f := trainer.FunctionOf(p.loss)
		least, most := f.Bounds()
		for _, d := range p.data {
			at := row * e.options.Length
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
func (e *Engine) reply(passes []*pass, high, low []float32) (differ int) {
	row := 0
	for _, p := range passes {
		var all [][]float32
		for i, d := range p.data {
			logs := make([]float32, len(d.Tokens))
			for k := range logs {
				at := row*e.options.Length + k
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

// replied is a pass with log-probabilities, and the loss that follows from these.
func replied(p *pass, logs [][]float32) *tinker.Pass {
	f, r := trainer.FunctionOf(p.loss), &tinker.Pass{LogProbs: logs, Backward: true}
	for i, d := range p.data {
		for k, x := range logs[i] {
			r.Loss += lossOf(f, d, k, float64(x))
		}
	}
	return r
}

// lossOf is the loss of a target with a log-probability.
func lossOf(f tokenloss.Function, d tinker.Datum, k int, log float64) float64 {
	weight := float64(d.Weights[k])
	if !f.Sampled() {
		return -weight * log
	}
	a := float64(d.Advantages[k])
	if a == 0 || weight == 0 {
		return 0
	}
	ratio := math.Exp(log - float64(d.Sampled[k]))
	if f.Kind == tokenloss.Proximal {
		return -weight * min(a*ratio, a*min(max(ratio, f.Low), f.High))
	}
	return -weight * a * ratio
}
