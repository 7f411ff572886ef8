package serving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/loop"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/node/trainer"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/web/tinker"
)

// led are the flags of a server whose steps a network takes.
type led struct {
	network, home  string
	blobs          []string
	cost, price    string
	rows, steps    int
	workers, looks int
	audits         float64
	idle           int64
}

func (l *led) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.network, "network", "", "HTTP interface of a validator of the network that takes the steps")
	f.StringVar(&l.home, "home", "", "with --network: folder of the account that pays")
	f.StringSliceVar(&l.blobs, "blob-listen", nil, "multiaddrs at which workers fetch data (default: any port of the "+
		"loopback)")
	f.StringVar(&l.cost, "max-cost", "25", "ZEN that all steps of a model may cost")
	f.StringVar(&l.price, "max-price", "1000", "ZEN per 10^15 floating-point operations, at most")
	f.IntVar(&l.rows, "rows", 8, "sequences of a step, at most: every step costs as many")
	f.IntVar(&l.steps, "steps", 10_000, "steps of a model, at most")
	f.IntVar(&l.workers, "workers", 3, "workers of a model: one takes a step, another takes its place if it fails")
	f.IntVar(&l.looks, "verifiers", 2, "verifiers of a model")
	f.Float64Var(&l.audits, "audits", 0.1, "share of the steps that are audited, at least")
	f.Int64Var(&l.idle, "idle", 3600, "blocks without a step after which the run of a model ends")
}

// ask checks the flags, and says what the orders ask for, without the length of sequences and the version of the
// numerics.
func (l *led) ask(cmd *cobra.Command) (o loop.Options, err error) {
	if l.network == "" {
		for _, name := range []string{"home", "blob-listen", "max-cost", "max-price", "rows", "steps", "workers", "verifiers",
			"audits", "idle"} {
			if cmd.Flags().Changed(name) {
				return o, usage.Error(cmd, fmt.Errorf("--%s needs --network", name))
			}
		}
		return o, nil
	}
	cost, err := quantity.ParseAmount(l.cost)
	price, wrong := quantity.ParseAmount(l.price)
	switch err = errors.Join(err, wrong); {
	case err != nil:
	case l.home == "":
		err = errors.New("--network needs --home, the folder of the account that pays")
	case min(l.rows, l.steps, l.workers, l.looks) < 1 || max(l.rows, l.workers, l.looks) > 1<<9 || l.steps > 1<<20:
		err = errors.New("--rows, --workers and --verifiers must be from 1 to 512, and --steps from 1 to 1048576")
	case !(l.audits >= 0 && l.audits <= 1):
		err = errors.New("--audits is a share from 0 to 1")
	case l.idle < terms.MinBlocks || l.idle > terms.MaxBlocks:
		err = fmt.Errorf("--idle must be from %d to %d blocks", terms.MinBlocks, terms.MaxBlocks)
	}
	if err != nil {
		return o, usage.Error(cmd, err)
	}
	return loop.Options{Shape: loop.Shape{Rows: l.rows, Steps: uint32(l.steps)},
		Terms: loop.Terms{Budget: uint64(cost), PriceCap: uint64(price), Workers: uint32(l.workers),
			Verifiers: uint32(l.looks), AuditPPM: uint32(l.audits*1e6 + 0.5), Idle: l.idle},
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}, nil
}

// engine opens a model as an engine whose steps a network takes, and returns what closes it.
func (l *led) engine(ctx context.Context, dir string, o trainer.Options,
	ask loop.Options) (*trainer.Trainer, tinker.Engine, func() error, error) {
	var err error
	if l.network != "" {
		if o.Numerics, err = session.Numerics(ctx, l.network); err != nil {
			return nil, nil, nil, err
		}
	}
	t, err := trainer.Open(dir, o)
	if err != nil || l.network == "" {
		return t, t, func() error { return nil }, err
	}
	h, _, err := home.Open(l.home)
	if err != nil {
		return nil, nil, nil, err
	}
	a, err := account.Open(h, l.network, l.blobs)
	if err != nil {
		return nil, nil, nil, err
	}
	ask.Length, ask.Numerics = t.Base().Context, o.Numerics
	return t, loop.New(ctx, t, a, ask), a.Close, nil
}
