// Package patches asks the members of a run for patches of its checkpoints, and writes to the log of a process what an
// exchange of weights brings it. It moves no bytes: network/weights does.
package patches

import (
	"context"
	"errors"
	"log/slog"

	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/weights"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Exchange is an exchange of weights that asks the members of a run, and writes to a log what it brings.
type Exchange struct {
	*weights.Exchange
	Log     *slog.Logger
	Members func(ctx context.Context) (addrs []string, err error) // of the run
}

// Registry lists the participants of a network.
type Registry interface {
	Participants(ctx context.Context) ([]registry.Participant, error)
}

// Members are the addresses of the members of a run, those that left it included.
func Members(ctx context.Context, g Registry, members []crew.Member) (addrs []string, err error) {
	participants, err := g.Participants(ctx)
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for _, m := range members {
		listed[m.ID] = true
	}
	for _, p := range participants {
		if listed[p.ID] {
			addrs = append(addrs, p.Addrs...)
		}
	}
	return addrs, nil
}

// Bring implements bundle.Bringer. Of all holders of blobs it asks the members of the run only.
func (p Exchange) Bring(ctx context.Context, from, to patch.Name, most int64, _ []string,
	apply func(h *patch.Head, get func(i int) ([]byte, error)) error) (int64, error) {
	holders, err := p.Members(ctx)
	if err != nil {
		return 0, err
	}
	size, err := p.Exchange.Bring(ctx, from, to, most, holders, apply)
	refused := (*weights.RefusedError)(nil)
	switch {
	case err == nil:
		p.Log.Info("checkpoint came as a patch", "root", to.Root.Short(), "bytes", size, "whole_bytes", most+1)
	case errors.As(err, &refused):
		p.Log.Warn("a patch is refused: the checkpoint is fetched whole", "root", to.Root.Short(), "peer",
			refused.Peer.String(), "patch", refused.Head.String(), "err", err)
	default:
		p.Log.Debug("no patch: the checkpoint is fetched whole", "root", to.Root.Short(), "err", err)
	}
	return size, err
}
