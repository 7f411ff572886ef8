package extra

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/node/arena"
	"github.com/starling-network/starling/node/busy"
	rules "github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/coin"
)

// errPaused ends what is under way when a pause begins.
var errPaused = errors.New("extra: the machine is paused")

// again is after how many blocks an offer that failed is made again: the account may have had too few coins.
const again = 50

// market is the part of a network that an evaluator needs.
type market interface {
	arena.Market
	arena.Evaluators
	Retire(ctx context.Context) (uint64, error)
}

// judge evaluates contests.
type judge struct {
	Process
	account  string
	bond     uint64
	chain    market
	evaluate *arena.Judge

	offered bool  // the account may be drawn, or has panels left
	known   bool  // offered was read from the chain
	failed  int64 // height of the last offer that failed; 0: none did
}

func newJudge(p Process, o Options) *judge {
	j := &judge{Process: p, bond: o.Bond, chain: p.Chain.Arena, account: p.Chain.Address()}
	j.evaluate = &arena.Judge{Dir: filepath.Join(p.Home, "arena", "judge"), Account: j.account, Threads: p.Threads,
		Private: o.Private, Say: p.Say, Resting: p.Pause.Paused, Memory: p.Memory,
		Begin: func() func() { return p.Busy.Begin(busy.Evaluation) }}
	return j
}

// run follows the chain until the context ends, or it drains and the account is in no panel.
func (j *judge) run(ctx context.Context) error {
	blocks, err := j.Chain.Blocks(ctx)
	if err != nil {
		return err
	}
	for b := range blocks {
		done, err := j.block(ctx, b.Height)
		if err != nil && ctx.Err() == nil {
			j.Log.Warn("evaluates no contest at this block", "err", err)
		}
		if done {
			return nil
		}
	}
	return errors.Join(ctx.Err(), client.ErrClosed)
}

// block does what the account owes at a height. done says that it drains and owes nothing.
func (j *judge) block(ctx context.Context, height int64) (done bool, err error) {
	draining := false
	select {
	case <-j.Drain:
		draining = true
	default:
	}
	err = j.offer(ctx, height, !draining && !j.Pause.Paused())
	if draining && j.known && !j.offered {
		return true, err
	}
	working, stop := unpaused(ctx, j.Pause)
	defer stop()
	if j.Pause.Paused() {
		working = ctx // what it still does takes no time worth setting aside
	}
	failed := j.evaluate.Block(working, j.chain, height)
	if context.Cause(working) == errPaused {
		failed = nil // it continues after the pause
	}
	return false, errors.Join(err, failed)
}

// offer makes the account one that is drawn, or takes that back, with its bond. While the account is in a panel it is
// not taken back.
func (j *judge) offer(ctx context.Context, height int64, wanted bool) error {
	if j.known && wanted == j.offered || j.failed > 0 && height < j.failed+again {
		return nil
	}
	if !wanted {
		e, err := arena.Standing(ctx, j.chain, j.account)
		if err != nil || e.Panels > 0 {
			j.known = false // the panel may end with the account not ready
			return err
		}
		if e.Bond > 0 {
			if _, err = j.chain.Retire(ctx); errors.Is(err, rules.ErrBusy) {
				return nil // drawn meanwhile
			}
		}
		j.settle(height, false, err)
		return err
	}
	bond, changed, err := arena.Offer(ctx, j.chain, j.account, j.bond)
	if j.settle(height, true, err); err != nil {
		j.Say(fmt.Sprintf("it evaluates no contests yet: %v", err))
		return err
	}
	if changed {
		j.Say("it evaluates contests, with a bond of " + coin.Coin{}.Text(bond))
	}
	return nil
}

// settle notes what came of a change of the offer.
func (j *judge) settle(height int64, offered bool, err error) {
	if err != nil {
		j.failed = height
		return
	}
	j.failed, j.known, j.offered = 0, true, offered
}
