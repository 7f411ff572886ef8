package extra

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	module "github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/node/arena"
	"github.com/starling-network/starling/node/pause"
	rules "github.com/starling-network/starling/protocol/arena"
)

// chain has one evaluator.
type chain struct {
	account string
	e       rules.Evaluator
	poor    bool // the account has no coins for a bond
}

func (c *chain) Evaluators(context.Context) ([]rules.Evaluator, error) {
	if c.e.Account == "" {
		return nil, nil
	}
	return []rules.Evaluator{c.e}, nil
}

func (c *chain) Evaluate(_ context.Context, bond uint64) (uint64, error) {
	if c.poor {
		return 0, errors.New("too few coins")
	}
	c.e.Account = c.account
	e, err := c.e.Offer(bond)
	c.e = e
	return e.Bond, err
}

func (c *chain) Retire(context.Context) (uint64, error) {
	bond, err := c.e.Retire()
	if err == nil {
		c.e = rules.Evaluator{}
	}
	return bond, err
}

func (c *chain) Contests(context.Context, bool) ([]rules.Contest, error)              { return nil, nil }
func (c *chain) Contest(context.Context, uint64) (s module.Standing, _ error)         { return s, nil }
func (c *chain) Seal(context.Context, uint64, canon.Digest) error                     { return nil }
func (c *chain) OpenReport(context.Context, uint64, rules.Report, canon.Digest) error { return nil }

// A judge may be drawn while the machine is neither paused nor draining. In a panel it stays until that is over, and it
// is one again after a panel in which it was silent.
func TestAJudgeIsOneOutsideOfPauses(t *testing.T) {
	const me, bond = "me", 2 * rules.MinBond
	p, err := pause.Open(t.TempDir(), pause.Conditions{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	c, drain, height := &chain{account: me, poor: true}, make(chan struct{}), int64(0)
	j := &judge{Process: Process{Pause: p, Drain: drain, Say: func(string) {}, Log: slog.New(slog.DiscardHandler)},
		account: me, bond: bond, chain: c,
		evaluate: &arena.Judge{Dir: t.TempDir(), Account: me, Say: func(string) {}}}
	block := func() bool {
		height++
		done, _ := j.block(t.Context(), height)
		return done
	}
	is := func(ready bool, when string) {
		t.Helper()
		if block(); c.e.Ready != ready || ready && c.e.Bond < rules.MinBond {
			t.Errorf("%s: %+v", when, c.e)
		}
	}
	is(false, "without coins")
	c.poor = false
	is(false, "soon after that")
	height += again
	is(true, "with coins")
	toggle := func(f func() (pause.State, error)) {
		if _, err := f(); err != nil {
			t.Fatal(err)
		}
	}
	stop := func() (pause.State, error) { return p.Pause(0) }
	toggle(stop)
	is(false, "paused")
	toggle(p.Resume)
	is(true, "resumed")
	c.e.Panels = 1
	toggle(stop)
	is(true, "paused in a panel")
	c.e, _ = c.e.Release(true)
	toggle(p.Resume)
	is(true, "after a panel in which it was silent")
	c.e.Panels = 1
	if close(drain); block() || c.e.Account == "" {
		t.Errorf("it drains in a panel: %+v", c.e)
	}
	c.e.Panels = 0
	block()
	if !block() || c.e.Account != "" {
		t.Errorf("drained: %+v", c.e)
	}
}
