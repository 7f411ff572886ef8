// Package retire lets the account of a worker or verifier leave a network: its process drains, its units are handed
// back, its stake leaves, and its coins are sent elsewhere. It runs no process of a worker; that is node/provider.
package retire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/node/control"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/provider"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/node/uplink"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry"
)

// Options say how an account leaves a network.
type Options struct {
	Home string // folder of the key
	RPC  string // HTTP interface of a validator
	To   string // address that is sent the coins; "": they stay where they are
	Memo string // of that transfer
	Say  func(string)
	Wait func(done, total int) // told of the blocks of the wait for the stake; total 0 ends it

	GiveUp time.Duration // it ends when no block has come for so long; 0: it waits
}

// Retired is what an account did to leave a network. Amounts are in uzen.
type Retired struct {
	Account  string   `json:"account"`
	Drained  bool     `json:"drained"` // a process ran over the folder, and has ended
	Left     []string `json:"left"`    // runs that were left for want of a process
	Unstaked uint64   `json:"unstaked_uzen"`
	To       string   `json:"to,omitempty"`
	Sent     uint64   `json:"sent_uzen"`
	Hash     string   `json:"hash,omitempty"` // of the transfer
	Balance  uint64   `json:"balance_uzen"`   // that stays
}

// Run lets the account of a folder leave a network: its process drains, or its units are handed back if none runs,
// its stake leaves, and what it has is sent to another account. It takes as long as the stake answers for the work.
// Every step is begun only if the chain shows that it is still to do: a call that was interrupted is made again.
func Run(ctx context.Context, o Options) (*Retired, error) {
	h, err := home.Read(o.Home)
	if err != nil {
		return nil, err
	}
	c, err := client.Connect(o.RPC, h.Account())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	blocks, err := c.Blocks(ctx)
	if err != nil {
		return nil, err
	}
	heard, err := c.Blocks(ctx)
	if err != nil {
		return nil, err
	}
	r := retirement{Options: o, chain: c, blocks: blocks, pulse: uplink.NewPulse(o.RPC, o.Say),
		done: Retired{Account: c.Address(), Left: []string{}, To: o.To}}
	defer r.pulse.Stop()
	if err := uplink.While(ctx, heard, o.GiveUp, r.run); err != nil {
		return nil, err
	}
	return &r.done, nil
}

// run takes all steps.
func (r *retirement) run(ctx context.Context) error {
	if err := r.chain.Ready(ctx); err != nil {
		return err
	}
	unlock, err := r.drain(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	for _, step := range []func(context.Context) error{r.handBack, r.unstake, r.await, r.send} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// retirement is an account on its way out.
type retirement struct {
	Options
	chain  *client.Client
	blocks <-chan client.Block
	pulse  *uplink.Pulse
	done   Retired
}

// until asks at every block whether something is so. A question that fails is asked again.
func (r *retirement) until(ctx context.Context, is func(height int64) (bool, error)) error {
	told := ""
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.pulse.Silence():
			r.pulse.Silent(nil)
		case b, ok := <-r.blocks:
			if !ok {
				return errors.Join(ctx.Err(), client.ErrClosed)
			}
			r.pulse.Block(b.Height)
			yes, err := is(b.Height)
			if yes && err == nil {
				return nil
			}
			if err != nil && ctx.Err() == nil && err.Error() != told {
				told = err.Error()
				r.Say("asks again at the next block: " + told)
			}
		}
	}
}

// drain lets the process over the folder finish, if one runs, and keeps others out of the folder.
func (r *retirement) drain(ctx context.Context) (unlock func() error, err error) {
	switch err := control.Drain(ctx, r.Home); {
	case err == nil:
		r.done.Drained = true
		r.Say("draining: the process stops once its current work is settled")
	case !errors.Is(err, control.ErrNotRunning) && !errors.Is(err, control.ErrLongPath):
		return nil, err
	}
	if unlock, err = folder.Lock(r.Home); !errors.Is(err, folder.ErrInUse) {
		return unlock, err
	}
	if !r.done.Drained {
		r.Say("another process uses the folder: it continues when that one ends; Ctrl-C there lets it drain")
	}
	open := ""
	err = r.until(ctx, func(int64) (bool, error) {
		var err error
		if unlock, err = folder.Lock(r.Home); !errors.Is(err, folder.ErrInUse) {
			return true, err
		}
		var s provider.WorkerStatus
		if control.Status(ctx, r.Home, &s) == nil && fmt.Sprint(s.Runs) != open && len(s.Runs) > 0 {
			open = fmt.Sprint(s.Runs)
			r.Say("waits for the work in " + strings.Join(s.Runs, ", ") + " to be settled")
		}
		return false, nil
	})
	return unlock, err
}

// handBack takes the offers of the account back, and leaves the runs that no process of it works in any more.
func (r *retirement) handBack(ctx context.Context) error {
	offers, err := r.chain.Market.Offers(ctx)
	if err != nil {
		return err
	}
	for _, o := range offers {
		switch {
		case o.ID != r.done.Account:
			continue
		case o.Pool:
			err = r.chain.Market.OfferPool(ctx, o.Price, 0)
		default:
			err = r.chain.Market.Offer(ctx, o.Role, o.Price, 0)
		}
		if err != nil {
			return err
		}
	}
	jobs, err := r.chain.Training.Runs(ctx, true)
	if err != nil {
		return err
	}
	for _, name := range jobs {
		state, err := r.chain.Training.Run(ctx, name)
		if err != nil {
			return err
		}
		if !state.MayLeave(r.done.Account) {
			continue
		}
		if err := r.chain.Work.Leave(ctx, name); err != nil {
			return err
		}
		r.done.Left = append(r.done.Left, name)
		r.Say("left " + name + ": what was not committed goes to others")
	}
	return nil
}

// unstake asks for all of the stake, if that has not been done: the time until it leaves begins with the last request.
func (r *retirement) unstake(ctx context.Context) error {
	p, err := r.chain.Registry.Participant(ctx, r.done.Account)
	switch {
	case errors.Is(err, client.ErrNotFound):
		r.Say("nothing is staked")
		return nil
	case err != nil:
		return err
	}
	if p.Tier != registry.NoTier { // who commits to a tier keeps its stake
		next := p
		next.Tier, next.Pool, next.Stake = registry.NoTier, "", 0
		if err := r.chain.Registry.Register(ctx, next); err != nil {
			return err
		}
	}
	if p.Leaving != p.Stake {
		if err := r.chain.Registry.Unstake(ctx, p.Stake); err != nil {
			return err
		}
	}
	stakes, err := r.chain.Stakes.Of(ctx, r.done.Account)
	for _, s := range stakes {
		if err == nil && s.Leaving != s.Amount {
			err = r.chain.Stakes.Leave(ctx, "", s.Coin, s.Amount)
		}
	}
	return err
}

// staked reports whether something of a stake, in any coin, is left.
func (r *retirement) staked(ctx context.Context) (stake uint64, left bool, err error) {
	p, err := r.chain.Registry.Participant(ctx, r.done.Account)
	if errors.Is(err, client.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, true, err
	}
	stakes, err := r.chain.Stakes.Of(ctx, r.done.Account)
	left = p.Stake > 0
	for _, s := range stakes {
		left = left || s.Amount > 0
	}
	return p.Stake, left, err
}

// await returns when the stake is paid out.
func (r *retirement) await(ctx context.Context) error {
	a, err := session.ReadAccount(ctx, r.RPC, r.done.Account)
	if err != nil {
		return err
	}
	if _, left, err := r.staked(ctx); err != nil || !left {
		return err
	}
	in := time.Duration(a.LeavesIn * float64(time.Second)).Round(time.Second)
	r.Say(fmt.Sprintf("%s ZEN of stake leave after block %d, in about %s; Ctrl-C ends the wait, and the same command "+
		"continues it", quantity.Amount(a.Stake), a.LeavesAt, in))
	if r.Wait != nil {
		defer r.Wait(0, 0)
	}
	first, late := int64(0), false
	return r.until(ctx, func(height int64) (bool, error) {
		stake, left, err := r.staked(ctx)
		if err != nil || !left {
			return err == nil, err
		}
		r.done.Unstaked = max(r.done.Unstaked, stake)
		if first == 0 {
			first = height
		}
		if height > a.LeavesAt && !late {
			late = true
			r.Say("the account still has a part in a run; its stake leaves when that is over")
		}
		if r.Wait != nil && !late {
			r.Wait(int(height-first), int(a.LeavesAt-first))
		}
		return false, nil
	})
}

// send moves what the account has.
func (r *retirement) send(ctx context.Context) error {
	if r.To != "" {
		if err := r.sendAll(ctx); err != nil {
			return err
		}
	}
	var err error
	r.done.Balance, err = r.chain.Coins.Balance(ctx, r.done.Account)
	return err
}

// feeShare is the part of client.Reserve that is kept for the fee of the transfer: more than it takes.
const feeShare = 20

func (r *retirement) sendAll(ctx context.Context) error {
	held, err := session.Holdings(ctx, r.chain.Modules, r.done.Account)
	if err != nil {
		return err
	}
	for _, h := range held {
		if h.Balance == 0 {
			continue
		}
		if _, err := r.chain.Coins.Send(ctx, r.To, h.Coin, h.Balance, r.Memo); err != nil {
			return err
		}
		r.Say(fmt.Sprintf("sent %s to %s", h.Coin.Text(h.Balance), r.To))
	}
	have, err := r.chain.Coins.Balance(ctx, r.done.Account)
	if err != nil {
		return err
	}
	reserve, err := r.chain.Reserve(ctx)
	if err != nil || have <= reserve/feeShare {
		return err
	}
	amount := have - reserve/feeShare
	sent, err := r.chain.Coins.Send(ctx, r.To, coin.Coin{}, amount, r.Memo)
	if err != nil {
		return err
	}
	r.done.Sent, r.done.Hash = amount, sent.Hash
	return nil
}
