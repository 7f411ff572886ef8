package people

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/busy"
)

// plays are how long and how often networks are played.
type plays struct {
	until, joins, span time.Duration
	rates              []uint64
	classes            []kind
	rounds, switching  uint32
}

// mostAtOnce bounds the networks that a quick measurement plays at the same time, each of which needs memory.
const mostAtOnce = 4

// play plays the simulated networks: in a quick measurement several at a time. Their figures depend on seeds alone.
func (r *Report) play(ctx context.Context, o Options, p plays) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(1)
	if o.Quick {
		g.SetLimit(min(kernel.Cores, mostAtOnce))
	}
	var telling sync.Mutex
	say := func(text string) {
		telling.Lock()
		defer telling.Unlock()
		o.Progress(text)
	}
	n := len(p.rates)
	r.Income = make([]Income, o.Seeds*n+len(p.classes))
	r.Split, r.Place, r.Upgrade = make([]Split, o.Seeds), make([]Place, o.Seeds), make([]Upgrade, o.Seeds)
	classes := []busy.Class{busy.Verification, busy.Generation}
	wide, of := make([]Busy, o.Seeds), make([]Busy, o.Seeds*len(classes))
	for seed := range uint64(o.Seeds) {
		for i, rate := range p.rates {
			into(ctx, g, say, &r.Income[int(seed)*n+i],
				fmt.Sprintf("a machine of %d operations a second joins a network, seed %d", rate, seed),
				func() (Income, error) { return income(ctx, seed, rate, p.joins, p.until) })
		}
		into(ctx, g, say, &r.Upgrade[seed], fmt.Sprintf("a release on a network of %d nodes, seed %d", upgraded, seed),
			func() (Upgrade, error) { return upgrade(ctx, seed, rollout, p.switching) })
		into(ctx, g, say, &r.Split[seed], fmt.Sprintf("a machine, and its halves, seed %d", seed),
			func() (Split, error) { return split(ctx, seed, p.until) })
		into(ctx, g, say, &wide[seed], fmt.Sprintf("rounds of %d units, seed %d", many, seed),
			func() (Busy, error) { return busyOver(ctx, seed, p.span, many) })
		for i, c := range classes {
			into(ctx, g, say, &of[int(seed)*len(classes)+i], fmt.Sprintf("more %s than its machines do, seed %d", c, seed),
				func() (Busy, error) { return busyIn(ctx, c, seed, p.span) })
		}
		into(ctx, g, say, &r.Place[seed], fmt.Sprintf("an order on a network of %d regions, seed %d", regions, seed),
			func() (Place, error) { return place(ctx, seed, p.rounds) })
	}
	for i, m := range p.classes {
		into(ctx, g, say, &r.Income[o.Seeds*n+i],
			fmt.Sprintf("a machine of %d operations a second joins a network of three classes", m.rate),
			func() (Income, error) { return incomeOfClass(ctx, 0, m, p.joins, p.until) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for seed, s := range r.Split {
		r.Busy = append(r.Busy, wide[seed], Busy{Class: busy.Training, Units: few, Share: min(s.BusyWhole, s.BusyParts),
			Most: most(crowd(0), few, longRun)})
		r.Busy = append(r.Busy, of[seed*len(classes):(seed+1)*len(classes)]...)
	}
	return nil
}

// into plays a network in its turn, and keeps what it gives.
func into[T any](ctx context.Context, g *errgroup.Group, say func(string), at *T, text string, play func() (T, error)) {
	g.Go(func() (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		say(text)
		*at, err = play()
		return err
	})
}
