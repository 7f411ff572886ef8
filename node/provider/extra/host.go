package extra

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/node/hosting"
	"github.com/starling-network/starling/node/hosting/provider"
	"github.com/starling-network/starling/node/pause"
	rules "github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

// hosted is the name of the memory that a hosted model takes.
const hosted = "hosted model"

// copies of the weights are in memory while a model is hosted: one that answers, and one that answers accusations.
const copies = 2

// host hosts a model.
type host struct {
	Process
	provider *provider.Provider
	listener net.Listener
}

func openHost(ctx context.Context, p Process, o provider.Options) (*host, error) {
	o.Serve.Threads = p.Threads
	h := &host{Process: p}
	h.provider = &provider.Provider{Options: o, Home: p.Home, Key: p.Key, Log: p.Log,
		Wrap: func(m hosting.Model) hosting.Model { return gate{m, p.Pause, p.Busy} }}
	if err := h.provider.Load(ctx); err != nil {
		return nil, err
	}
	if err := p.Memory.Reserve(hosted, copies*h.provider.Bytes()+o.Serve.Memory); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		p.Memory.Release(hosted)
		return nil, err
	}
	h.listener = l
	return h, nil
}

// run answers requests until the context ends, or it drains.
func (h *host) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-h.Drain:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := h.provider.Run(ctx, h.Chain, h.listener, func(m rules.Model, at rules.Place) {
		h.Say(fmt.Sprintf("model %d, %s, is hosted at %s", m.ID, m.Name, at.URL))
	})
	if ctx.Err() != nil {
		err = nil
	}
	return err
}

func (h *host) close() error {
	h.Memory.Release(hosted)
	if err := h.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// gate keeps requests from a model in a pause. A text that is under way when one begins ends, and costs nothing.
type gate struct {
	hosting.Model
	pause *pause.Pauser
	busy  *busy.Meter
}

// errResting wraps openai.ErrBusy, so that a client asks another provider, or later.
var errResting = fmt.Errorf("%w: the machine is paused", openai.ErrBusy)

// Generate implements openai.Model.
func (g gate) Generate(ctx context.Context, r openai.Request, emit func(openai.Piece) error) (openai.Result, error) {
	working, stop := unpaused(ctx, g.pause)
	defer stop()
	if g.pause.Paused() {
		return openai.Result{}, errResting
	}
	defer g.busy.Begin(busy.Hosting)()
	made, err := g.Model.Generate(working, r, emit)
	if err != nil && context.Cause(working) == errPaused {
		err = errResting
	}
	return made, err
}
