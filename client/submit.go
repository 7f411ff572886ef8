package client

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	abci "github.com/cometbft/cometbft/abci/types"
	cmttypes "github.com/cometbft/cometbft/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	accounts "github.com/starling-network/starling/chain/app/account"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/client/transaction"
)

const (
	patience = 100 // blocks until a transaction that is in none is lost
	attempts = 3   // at a transaction that runs out of gas
)

// Pending is a transaction that the validator has taken and that is in no block yet.
type Pending struct {
	tx       []byte
	hash     [32]byte
	sequence uint64
	sent     int64 // height at which the validator was given it last
	until    int64 // height after which it can be in no block
	done     chan struct{}
	result   transaction.Result
	err      error
	used     func(limit, used uint64, short bool) // told what gas it took
	limit    uint64                               // of gas
}

// Wait returns when the transaction is in a block, or can no longer be.
func (p *Pending) Wait(ctx context.Context) (transaction.Result, error) {
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return transaction.Result{}, ctx.Err()
	}
}

func (p *Pending) settle(height int64, r *abci.ExecTxResult) {
	p.result = transaction.Result{Height: height, Hash: hex.EncodeToString(p.hash[:]), GasUsed: r.GasUsed,
		Events: r.Events, Data: r.Data}
	p.err = transaction.Refusal(r.Codespace, r.Code, r.Log)
	p.used(p.limit, uint64(r.GasUsed), transaction.OutOfGas(p.err))
	close(p.done)
}

func (p *Pending) fail(err error) {
	p.err = err
	close(p.done)
}

// Submit signs messages into one transaction and returns when it is in a block. All of them are executed, or none. It
// returns a *transaction.Error if the chain refuses one.
func (c *Client) Submit(ctx context.Context, msgs ...sdk.Msg) (transaction.Result, error) {
	return c.SubmitNoted(ctx, "", msgs...)
}

// SubmitNoted is Submit with a memo, a public note. A Submitter gets no memo.
func (c *Client) SubmitNoted(ctx context.Context, memo string, msgs ...sdk.Msg) (transaction.Result, error) {
	if c.submit != nil {
		return c.submit(ctx, msgs...)
	}
	for i := 1; ; i++ {
		p, err := c.send(ctx, memo, msgs)
		if err != nil {
			return transaction.Result{}, err
		}
		r, err := p.Wait(ctx)
		if !transaction.OutOfGas(err) || i == attempts {
			return r, err
		}
	}
}

// account counts the sequence of the account, so that several transactions can be on their way at once.
type account struct {
	mu       sync.Mutex
	known    bool
	number   uint64
	sequence uint64
}

// SubmitAsync is Submit without the wait. It is first tried without a fee, which duties and the first transactions of
// an account with a stake need not pay; if the validator asks for a fee, that is paid.
func (c *Client) SubmitAsync(ctx context.Context, msgs ...sdk.Msg) (*Pending, error) {
	return c.send(ctx, "", msgs)
}

// send is SubmitAsync with a memo.
func (c *Client) send(ctx context.Context, memo string, msgs []sdk.Msg) (*Pending, error) {
	if err := c.follow.start(ctx); err != nil {
		return nil, err
	}
	a := &c.account
	a.mu.Lock()
	defer a.mu.Unlock()
	var fee transaction.Fee
	for {
		if err := c.sync(ctx, msgs); err != nil {
			return nil, err
		}
		p, err := c.broadcast(ctx, memo, msgs, fee)
		if err == nil {
			a.sequence++
			return p, nil
		}
		if transaction.Unpaid(err) && fee.Amount == nil {
			asked, why := c.fee(ctx, msgs)
			if why == nil {
				fee = asked
				continue
			}
			err = why // it would fail, whatever it paid; or the fee is not known: nothing was refused for good
		}
		e, refused := errors.AsType[*transaction.Error](err)
		sequence := refused && transaction.OutOfTurn(e.Space, e.Code)
		if !sequence && (refused || !c.catchingUp(ctx)) {
			a.known = false
			return nil, err
		}
		// An earlier transaction was lost, and is sent again; or another client used the account: after a block the chain
		// knows the sequence. Or the validator has just started, and refuses transactions until it has the blocks of the
		// others.
		a.known = c.resend(ctx)
		if err := c.next(ctx); err != nil {
			return nil, err
		}
	}
}

// catchingUp reports whether the validator fetches the blocks that the others have.
func (c *Client) catchingUp(ctx context.Context) bool {
	s, err := c.rpc.Status(ctx)
	return err == nil && s.SyncInfo.CatchingUp
}

// sync reads the sequence of the account, if it is not known.
func (c *Client) sync(ctx context.Context, msgs []sdk.Msg) error {
	if c.account.known {
		return nil
	}
	number, sequence, err := SequenceFor(ctx, c, msgs)
	if err != nil {
		return err
	}
	c.account.known, c.account.number, c.account.sequence = true, number, sequence
	return nil
}

// SequenceFor is Client.Sequence for messages. The first transaction of an account may be its registration without a
// stake, or its enrolment as a machine: then its number follows from its address.
func SequenceFor(ctx context.Context, c *Client, msgs []sdk.Msg) (number, sequence uint64, err error) {
	number, sequence, err = c.Sequence(ctx)
	m, _ := msgs[0].(*registrypb.MsgRegister)
	_, enrols := msgs[0].(*registrypb.MsgEnrol)
	if !enrols && !m.GetEarns() || !errors.Is(err, ErrNoAccount) {
		return number, sequence, err
	}
	address, err := sdk.AccAddressFromBech32(c.Address())
	return accounts.Derived(address), 0, err
}

// Sequence is the number of the account, and how many transactions it has made.
func (c *Client) Sequence(ctx context.Context) (number, sequence uint64, err error) {
	number, sequence, err = c.Coins.Sequence(ctx, c.Address())
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: %s", ErrNoAccount, c.Address())
	}
	return number, sequence, err
}

// next waits for a block.
func (c *Client) next(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	blocks, err := c.Blocks(ctx)
	if err != nil {
		return err
	}
	if _, ok := <-blocks; !ok {
		return errors.Join(ctx.Err(), ErrClosed)
	}
	return nil
}

// Ready waits until the validator answers queries: before the first block there is no state to answer from.
func (c *Client) Ready(ctx context.Context) error {
	s, err := c.rpc.Status(ctx)
	if err != nil || s.SyncInfo.LatestBlockHeight > 1 {
		return err
	}
	return c.next(ctx) // the first block may be known, and not executed yet
}

// broadcast signs and sends one transaction.
func (c *Client) broadcast(ctx context.Context, memo string, msgs []sdk.Msg, fee transaction.Fee) (*Pending, error) {
	f := c.follow
	f.mu.Lock()
	until := f.last + patience
	f.mu.Unlock()
	if fee.Gas == 0 {
		fee.Gas = c.gas.Limit(msgs)
	}
	tx, err := transaction.Sign(ctx, c.signer, transaction.Account{ChainID: c.follow.chainID, Number: c.account.number,
		Sequence: c.account.sequence, Fee: fee, Memo: memo}, uint64(until), msgs...)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	p := &Pending{
		tx: tx, hash: [32]byte(cmttypes.Tx(tx).Hash()), sequence: c.account.sequence, sent: until - patience, until: until,
		done:  make(chan struct{}),
		limit: fee.Gas, used: func(limit, used uint64, short bool) { c.gas.Learn(msgs, limit, used, short) },
	}
	f.mu.Lock()
	if !f.running {
		f.mu.Unlock()
		return nil, ErrClosed
	}
	f.pending[p.hash] = p
	f.mu.Unlock()
	r, err := c.rpc.BroadcastTxSync(ctx, tx)
	if err == nil {
		err = transaction.Refusal(r.Codespace, r.Code, r.Log)
	} else {
		err = fmt.Errorf("client: %w", err)
	}
	if err != nil {
		f.mu.Lock()
		delete(f.pending, p.hash)
		f.mu.Unlock()
		return nil, err
	}
	return p, nil
}

// resend sends the transactions that are in no block yet to the validator again, in their order, and reports whether
// there are any. A validator that has them refuses them, and none is executed twice: each has a sequence of its own.
//
// A transaction is lost when its validator is killed, and when it reaches the proposer of a block from another peer,
// and so earlier, than one before it: it fails for its sequence, and all validators drop those after it.
func (c *Client) resend(ctx context.Context) bool {
	f := c.follow
	f.mu.Lock()
	list := slices.SortedFunc(maps.Values(f.pending),
		func(a, b *Pending) int { return cmp.Compare(a.sequence, b.sequence) })
	for _, p := range list {
		p.sent = f.last
	}
	f.mu.Unlock()
	for _, p := range list {
		r, err := c.rpc.BroadcastTxSync(ctx, p.tx)
		if err != nil || !transaction.OutOfTurn(r.Codespace, r.Code) {
			continue
		}
		// If the account is past it, it is in a block by now, or will be in none.
		_, sequence, err1 := c.Sequence(ctx)
		s, err2 := c.rpc.Status(ctx)
		if err1 == nil && err2 == nil && sequence > p.sequence {
			f.mu.Lock()
			p.until = min(p.until, s.SyncInfo.LatestBlockHeight)
			f.mu.Unlock()
		}
	}
	return len(list) > 0
}
