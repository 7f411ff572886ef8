// Package patches writes to the log of a process what an exchange of weights brings it. It moves no bytes:
// network/weights does.
package patches

import (
	"context"
	"errors"
	"log/slog"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/weights"
)

// Exchange is an exchange of weights that writes to a log what it brings.
type Exchange struct {
	*weights.Exchange
	Log *slog.Logger
}

// Bring implements bundle.Bringer.
func (p Exchange) Bring(ctx context.Context, from, to canon.Digest, most int64, holders []string,
	apply func(h *patch.Head, get func(i int) ([]byte, error)) error) (weights.Brought, error) {
	got, err := p.Exchange.Bring(ctx, from, to, most, holders, apply)
	refused := (*weights.RefusedError)(nil)
	switch {
	case err == nil:
		p.Log.Info("checkpoint came as patches", "root", to.Short(), "patches", got.Patches, "bytes", got.Bytes,
			"whole_bytes", most+1)
	case errors.As(err, &refused):
		p.Log.Warn("a patch is refused: the checkpoint is fetched whole", "root", to.Short(), "peer", refused.Peer.String(),
			"patch", refused.Head.String(), "err", err)
	default:
		p.Log.Debug("no patches: the checkpoint is fetched whole", "root", to.Short(), "err", err)
	}
	return got, err
}
