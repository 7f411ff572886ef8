package loop

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/starling-network/starling/compute/model/tokenloss"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/loop/order"
	"github.com/starling-network/starling/node/loop/record"
	"github.com/starling-network/starling/node/trainer"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker"
)

// retryAfter is how long a network that does not answer is left alone.
const retryAfter = 2 * time.Second

// Resume implements tinker.Lasting: it gives a model, which a process before this one created, the weights of its last
// step and the run that waits for the next one.
func (e *Engine) Resume(name string, c tinker.Create) error {
	for {
		err := e.Create(name, c)
		if err == nil {
			if err = e.recall(name); err != nil {
				e.drop(name)
			}
		}
		if again := (*failure.Error)(nil); err == nil || e.ctx.Err() != nil || !errors.As(err, &again) || again.Retry == 0 {
			return err
		}
		e.options.Log.Warn("a model is not continued yet", "model", name, "err", err)
		select {
		case <-e.ctx.Done():
			return e.ctx.Err()
		case <-time.After(retryAfter):
		}
	}
}

// drop forgets a model, and leaves its folder.
func (e *Engine) drop(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.models, name)
	e.Trainer.Unload(name)
}

// recall reads what the folder has of a model.
func (e *Engine) recall(name string) error {
	var k record.Model
	switch err := folder.ReadJSON(e.shelf.modelFile(name), &k); {
	case errors.Is(err, os.ErrNotExist):
		return nil // it was created, and no more
	case err != nil:
		return err
	}
	m, _, err := e.find(name)
	if err != nil {
		return err
	}
	if k.Order == "" {
		if k.Loaded == nil {
			return nil
		}
		m.loaded, m.state = k.Loaded, k.Optimizer
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.Trainer.Load(name, *k.Loaded, k.Optimizer)
	}
	s := e.shelf.session(k.Order)
	if s == nil {
		return fmt.Errorf("%s has no blobs of the run %s", e.shelf.dir, k.Order)
	}
	if err := e.reload(name, s); err != nil {
		return err
	}
	open := false
	if !s.record.Over {
		open, err = order.Open(e.ctx, e.account.Chain, k.Order)
	}
	if err == nil {
		err = e.account.Enlist(e.ctx) // members fetch data at the address of this process
	}
	switch {
	case err != nil:
		return order.Unreachable(err)
	case open:
		m.session = s
		e.options.Log.Info("continued", "job", s.ID, "steps", len(s.record.Fed))
		return nil
	case !s.record.Over:
		s.End(e.ctx)
	}
	m.before = k.Order
	return nil
}

// reload gives a model the weights of the last step of a session, and the session the program of its steps.
func (e *Engine) reload(name string, s *Session) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	state, err := trainer.StateOf(e.Trainer, name)
	if err != nil {
		return err
	}
	r := &s.record
	step, err := tokenloss.Step(state.Config, r.Adam, r.Rows, r.Length)
	if err != nil {
		return err
	}
	step = step.In(r.Numerics)
	s.work.Task = &train.Task{Step: step}
	for _, n := range train.Frozen(step) {
		s.work.Task.Frozen = append(s.work.Task.Frozen, state.Base[n])
	}
	if step.Digest() != r.Program || train.FrozenRoot(train.Roots(s.work.Task.Frozen)) != r.Frozen {
		return fmt.Errorf("the run %s trains another base model: start the server with that one", r.Order)
	}
	c, err := bundle.LoadCheckpoint(e.ctx, r.Last, s.store.Get)
	if err == nil {
		return e.adopt(name, state, s, c)
	}
	if _, err := s.chain.Registry.Addrs(e.ctx); err != nil {
		return order.Unreachable(err)
	}
	if c, err = s.load(e.ctx, r.Last); err != nil {
		return fmt.Errorf("the weights of the last step are neither here nor with the members of %s: %w", r.Order, err)
	}
	return e.adopt(name, state, s, c)
}
