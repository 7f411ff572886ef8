package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	rpcclient "github.com/cometbft/cometbft/rpc/client"
	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/client/transaction"
)

// Block is a block that the chain has made.
type Block struct {
	Height int64
	Time   time.Time // as the validators agreed on it
}

var newBlock = cmttypes.QueryForEvent(cmttypes.EventNewBlock).String()

// follower receives every block once, over one subscription, and passes it to all that wait for blocks or
// transactions.
type follower struct {
	rpc    rpcclient.Client
	name   string                         // of the subscription
	remote bool                           // the validator is another process: events may be lost
	resend func(ctx context.Context) bool // gives the validator the pending transactions once more

	mu       sync.Mutex
	running  bool
	ended    chan struct{}
	chainID  string
	last     int64 // height
	watchers map[chan Block]struct{}
	pending  map[[32]byte]*Pending
	sending  bool // pending transactions once more
}

// blocks is Client.Blocks.
func (f *follower) blocks(ctx context.Context) (<-chan Block, error) {
	if err := f.start(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ch := make(chan Block, 1)
	if !f.running {
		return nil, ErrClosed
	}
	f.watchers[ch] = struct{}{}
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if _, open := f.watchers[ch]; open {
			delete(f.watchers, ch)
			close(ch)
		}
	})
	return ch, nil
}

// start subscribes to the blocks, if that has not been done.
func (f *follower) start(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running {
		return nil
	}
	if f.ended != nil {
		return ErrClosed
	}
	status, err := f.rpc.Status(ctx)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	events, err := f.rpc.Subscribe(ctx, f.name, newBlock, 100)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	f.running, f.ended = true, make(chan struct{})
	f.chainID, f.last = status.NodeInfo.Network, status.SyncInfo.LatestBlockHeight
	f.watchers, f.pending = map[chan Block]struct{}{}, map[[32]byte]*Pending{}
	go f.listen(events, f.ended)
	return nil
}

func (f *follower) listen(events <-chan ctypes.ResultEvent, ended <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var silent <-chan time.Time
	if f.remote { // to a validator in our own process nothing is lost
		ticker := time.NewTicker(endpoint.Silence)
		defer ticker.Stop()
		silent = ticker.C
	}
	heard := true
	for {
		select {
		case e := <-events:
			heard = true
			if b, ok := e.Data.(cmttypes.EventDataNewBlock); ok {
				f.catchUp(ctx, b.Block.Height)
				f.tell(ctx, b.Block, b.ResultFinalizeBlock.TxResults)
			}
		case <-silent:
			if !heard {
				f.ask(ctx)
			}
			heard = false
		case <-f.rpc.Quit():
			f.end()
			return
		case <-ended:
			return
		}
	}
}

// ask reads the blocks that no event told of. Events stop without a word when the validator is gone or cut off, until
// there is another stream of them.
func (f *follower) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endpoint.ReplyTimeout)
	defer cancel()
	status, err := f.rpc.Status(ctx)
	if err != nil {
		return // until it is silent again
	}
	f.catchUp(ctx, status.SyncInfo.LatestBlockHeight+1)
}

// catchUp reads the blocks before a height that no event reported: all that may hold a pending transaction, or else
// the last.
func (f *follower) catchUp(ctx context.Context, height int64) {
	f.mu.Lock()
	h := f.last + 1
	if len(f.pending) == 0 {
		h = max(h, height-1)
	}
	f.mu.Unlock()
	for ; h < height; h++ {
		block, err := f.rpc.Block(ctx, &h)
		if err != nil {
			continue // pruned: transactions in it count as lost
		}
		results, err := f.rpc.BlockResults(ctx, &h)
		if err != nil {
			continue
		}
		f.tell(ctx, block.Block, results.TxsResults)
	}
}

// impatience is after how many blocks a transaction that is in none of them is given to the validator again.
const impatience = 5

// tell passes a block on.
func (f *follower) tell(ctx context.Context, b *cmttypes.Block, results []*abci.ExecTxResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.Height <= f.last {
		return
	}
	f.last = b.Height
	for ch := range f.watchers { // before the senders of transactions in it hear that it is there
		select {
		case <-ch:
		default:
		}
		ch <- Block{Height: b.Height, Time: b.Time}
	}
	again := false
	for i, tx := range b.Txs {
		hash := [32]byte(tx.Hash())
		p := f.pending[hash]
		if p == nil || i >= len(results) {
			continue
		}
		if transaction.OutOfTurn(results[i].Codespace, results[i].Code) { // its turn comes
			again = true
			continue
		}
		delete(f.pending, hash)
		p.settle(b.Height, results[i])
	}
	for hash, p := range f.pending {
		again = again || b.Height >= p.sent+impatience
		if b.Height >= p.until {
			delete(f.pending, hash)
			p.fail(fmt.Errorf("%w by height %d", ErrLost, p.until))
		}
	}
	if again && !f.sending {
		f.sending = true
		go func() {
			f.resend(ctx)
			f.mu.Lock()
			f.sending = false
			f.mu.Unlock()
		}()
	}
}

// end ends the wait of all receivers.
func (f *follower) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.running {
		return
	}
	f.running = false
	close(f.ended)
	for ch := range f.watchers {
		delete(f.watchers, ch)
		close(ch)
	}
	for hash, p := range f.pending {
		delete(f.pending, hash)
		p.fail(ErrClosed)
	}
}

// close ends the subscription, if there is one.
func (f *follower) close() {
	f.mu.Lock()
	running := f.running
	f.mu.Unlock()
	if running {
		// The validator may be gone already.
		_ = f.rpc.Unsubscribe(context.Background(), f.name, newBlock)
	}
	f.end()
}
