package loop

import (
	"context"
	"path/filepath"

	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/trainer"
	"github.com/starling-network/starling/web/tinker"
)

// Service is a model with which the training loops of clients begin. Zero values of its trainer are defaults.
type Service struct {
	Model   string // folder
	Trainer trainer.Options
	Models  int     // that are trained at once, at most
	Orders  Options // where a network takes the steps; sequences have as many tokens as the trainer's
}

// Open serves it until ctx ends: with an account, its network takes the steps, and the models of a server before this
// one are found again; without one, this machine does. Of the configuration it sets the number of models and the
// notice.
func (s Service) Open(ctx context.Context, a *account.Account, c tinker.Config) (*tinker.Server, *trainer.Trainer,
	error) {
	t, err := trainer.Open(s.Model, s.Trainer)
	if err != nil {
		return nil, nil, err
	}
	c.Models, c.Notice = s.Models, trainer.Notice
	if a == nil {
		return tinker.New(ctx, t, c), t, nil
	}
	s.Orders.Length, c.Notice = t.Base().Context, Notice
	e, err := New(ctx, t, a, s.Orders)
	if err != nil {
		return nil, nil, err
	}
	server := tinker.New(ctx, e, c)
	return server, t, server.Restore(filepath.Join(Folder(a), "clients"))
}
