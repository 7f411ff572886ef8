// Package loops has the flags of the servers of training loops, of starling model tune and, with the prefix loop-, of
// starling web and starling gateway, and executes their runs again.
package loops

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/loop"
	"github.com/starling-network/starling/node/loop/order"
	"github.com/starling-network/starling/node/trainer"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Context is the default of --context where a network takes the steps: each has as many tokens in all its sequences,
// whatever is sent.
const Context = 256

// Flags are those of a server of loops. Network and Home say whether a network takes the steps.
type Flags struct {
	prefix        string
	cost, price   string
	rows, steps   int
	workers       int
	looks         int
	audits        float64
	idle          int64
	trainer       trainer.Options
	models, kept  int
	data          int
	memory, saved int
}

// orders are the flags that say what an order of a run asks for, without their prefix.
var orders = []string{"max-cost", "max-price", "rows", "steps", "workers", "verifiers", "audits", "idle",
	"runs-kept", "run-data"}

// Define defines the flags, with a prefix of their names.
func (l *Flags) Define(cmd *cobra.Command, prefix, out string) {
	l.prefix = prefix
	f := cmd.Flags()
	f.StringVar(&l.cost, prefix+"max-cost", "25", "ZEN that all steps of a model may cost")
	f.StringVar(&l.price, prefix+"max-price", "1000", "ZEN per 10^15 floating-point operations, at most")
	f.IntVar(&l.rows, prefix+"rows", 8, "sequences of a step, at most: every step costs as many")
	f.IntVar(&l.steps, prefix+"steps", 10_000, "steps of a model, at most")
	f.IntVar(&l.workers, prefix+"workers", 3, "workers of a model: one takes a step, another takes its place if it fails")
	f.IntVar(&l.looks, prefix+"verifiers", 2, "verifiers of a model")
	f.Float64Var(&l.audits, prefix+"audits", 0.1, "share of the steps that are audited, at least")
	f.Int64Var(&l.idle, prefix+"idle", 3600, "blocks without a step after which the run of a model ends")
	f.IntVar(&l.kept, prefix+"runs-kept", 8, "runs that are over whose data are kept, so that they can be verified: the "+
		"latest")
	f.IntVar(&l.data, prefix+"run-data", 16_384, "MiB that the data of all runs may take: 28 bytes for each token of "+
		"a step")
	o := &l.trainer
	f.StringVar(&o.Out, prefix+"out", out, "folder of saved weights")
	f.IntVar(&o.Threads, prefix+"threads", kernel.Cores, "number of threads")
	f.IntVar(&o.Context, prefix+"context", 4096, "tokens of a sequence, at most: memory grows with them")
	f.IntVar(&l.models, prefix+"models", 4, "models that may be trained at once")
	f.IntVar(&o.Kept, prefix+"samplers", 4, "weights kept in memory to draw samples from")
	f.IntVar(&l.saved, prefix+"saved", trainer.DefaultSaved>>20, "MiB that all weights in the folder --"+prefix+
		"out may take")
	f.IntVar(&l.memory, prefix+"kv-memory", 1024, "MiB that the keys and values of samples may take")
}

// Check refuses flags that are given without the one that they need, which is named.
func (l *Flags) Check(cmd *cobra.Command, network, model bool, needs string) error {
	for _, name := range orders {
		if !network && cmd.Flags().Changed(l.prefix+name) {
			return usage.Error(cmd, fmt.Errorf("--%s needs %s", l.prefix+name, needs))
		}
	}
	for _, name := range []string{"out", "threads", "context", "models", "samplers", "saved", "kv-memory"} {
		if !model && cmd.Flags().Changed(l.prefix+name) {
			return usage.Error(cmd, fmt.Errorf("--%s needs %s", l.prefix+name, needs))
		}
	}
	return nil
}

// Service checks the values, and is the service of a model, whose steps a network takes or not.
func (l *Flags) Service(cmd *cobra.Command, model, name string, network bool) (s loop.Service, err error) {
	cost, err := quantity.ParseAmount(l.cost)
	price, wrong := quantity.ParseAmount(l.price)
	p, o := "--"+l.prefix, l.trainer
	switch err = errors.Join(err, wrong); {
	case err != nil:
	case min(l.rows, l.steps, l.workers, l.looks) < 1 || max(l.rows, l.workers, l.looks) > 1<<9 || l.steps > 1<<20:
		err = fmt.Errorf("%srows, %sworkers and %sverifiers must be from 1 to 512, and %ssteps from 1 to 1048576", p, p, p,
			p)
	case l.data < 1 || l.data > 1<<40:
		err = fmt.Errorf("%srun-data must be at least 1", p)
	case l.kept < 0:
		err = fmt.Errorf("%sruns-kept must be at least 0", p)
	case !(l.audits >= 0 && l.audits <= 1):
		err = fmt.Errorf("%saudits is a share from 0 to 1", p)
	case l.idle < terms.MinBlocks || l.idle > terms.MaxBlocks:
		err = fmt.Errorf("%sidle must be from %d to %d blocks", p, terms.MinBlocks, terms.MaxBlocks)
	case min(l.memory, l.models, l.saved, o.Kept, o.Threads, o.Context) < 1:
		err = fmt.Errorf("%skv-memory, %smodels, %ssamplers, %ssaved, %sthreads and %scontext must be at least 1", p, p, p, p,
			p, p)
	}
	if err != nil {
		return s, usage.Error(cmd, err)
	}
	if network && !cmd.Flags().Changed(l.prefix+"context") {
		o.Context = Context
	}
	o.Name, o.Memory, o.Saved = name, int64(l.memory)<<20, int64(l.saved)<<20
	return loop.Service{Model: model, Trainer: o, Models: l.models,
		Orders: loop.Options{Shape: order.Shape{Rows: l.rows, Steps: uint32(l.steps)},
			Terms: loop.Terms{Budget: uint64(cost), PriceCap: uint64(price), Workers: uint32(l.workers),
				Verifiers: uint32(l.looks), AuditPPM: uint32(l.audits*1e6 + 0.5), Idle: l.idle},
			Kept: l.kept, Data: int64(l.data) << 20, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}}, nil
}
