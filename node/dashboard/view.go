package dashboard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/ledger"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/standing"
	"github.com/starling-network/starling/web/failure"
)

// ChainView shows a network through a validator: source.Network. Until it has a connection it says so.
type ChainView struct {
	Address string // of the validator; "": it is in this process

	mu    sync.Mutex
	Chain *client.Client
	last  api.Network
	read  time.Time
}

// viewAge is how old what is shown of a network may be: about a block.
const viewAge = 500 * time.Millisecond

var ErrNoChain = &failure.Error{Status: http.StatusServiceUnavailable, Code: "NETWORK_STARTING",
	Detail: "the network is not up yet, or not any more", Fix: "wait for a moment", Retry: time.Second}

// Use says over which connection the network is seen; nil takes it away.
func (v *ChainView) Use(c *client.Client) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Chain, v.read = c, time.Time{}
}

func (v *ChainView) Client() (*client.Client, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Chain == nil {
		return nil, ErrNoChain
	}
	return v.Chain, nil
}

// unanswered returns the error that a reader of the dashboard gets when a validator does not answer.
func (v *ChainView) unanswered(err error) error {
	switch {
	case errors.Is(err, client.ErrNotFound):
		return fmt.Errorf("%w: %w", failure.ErrNotFound, err)
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return err
	}
	return &failure.Error{Status: http.StatusBadGateway, Code: "NETWORK_UNREACHABLE",
		Detail: "the validator does not answer", Fix: "check that it runs: starling doctor --network " + v.Address,
		Retry: 2 * time.Second}
}

// Overview implements source.Network.
func (v *ChainView) Overview(ctx context.Context) (api.Network, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Chain == nil {
		return api.Network{}, ErrNoChain
	}
	if time.Since(v.read) < viewAge {
		return v.last, nil
	}
	n, err := v.look(ctx)
	if err != nil {
		return api.Network{}, v.unanswered(err)
	}
	v.last, v.read = n, time.Now()
	return n, nil
}

func (v *ChainView) look(ctx context.Context) (api.Network, error) {
	head, err := v.Chain.Ledger.Head(ctx)
	if err != nil || head.Height == v.last.Height {
		return v.last, err
	}
	s, err := inspect.Overview(ctx, v.Chain, head, "")
	if err != nil {
		return api.Network{}, err
	}
	n := api.Network{Address: v.Address, ChainID: s.ChainID, Height: s.Height, Time: s.Time, CatchingUp: s.CatchingUp,
		Peers: head.Peers, Validators: []api.Validator{}, Participants: s.Participants, Orders: s.Orders, Runs: s.Runs}
	missed, window, err := v.Chain.At(head.Height).Validators.Missed(ctx)
	if err != nil {
		return api.Network{}, err
	}
	n.Window = window
	if n.Links, err = inspect.ReportedLinks(ctx, v.Chain.At(head.Height), ""); err != nil {
		return api.Network{}, err
	}
	for _, x := range s.Validators {
		n.Validators = append(n.Validators,
			api.Validator{Address: x.Address, Power: x.Power, Signed: x.Signed, Missed: missed[x.Address]})
	}
	return n, nil
}

// Account implements source.Network.
func (v *ChainView) Account(ctx context.Context, address string) (a api.Account, err error) {
	c, err := v.Client()
	if err != nil {
		return a, err
	}
	if err := wallet.CheckAddress(address); err != nil {
		return a, fmt.Errorf("%w: %w", failure.ErrNotFound, err)
	}
	head, err := c.Ledger.Head(ctx)
	if err != nil {
		return a, v.unanswered(err)
	}
	s, err := inspect.Overview(ctx, c, head, address)
	if err != nil {
		return a, v.unanswered(err)
	}
	earned, err := inspect.EarnedByDay(ctx, c, address)
	if err != nil {
		return a, v.unanswered(err)
	}
	x := s.Account
	a = api.Account{Address: address, Balance: x.Balance, Stake: x.Stake, Slashed: x.Slashed, Jailed: x.Jailed,
		Reasons: []api.Standing{}, Earned: earned}
	cause, why := standing.Deciding(x.Reasons)
	a.Now = &api.Reason{Code: string(cause), Text: why.Text, Next: why.Do}
	for _, r := range x.Reasons {
		a.Reasons = append(a.Reasons, api.Standing{Code: string(r.Code), Kind: string(r.Kind), Job: r.Job, Round: r.Round,
			Text: r.Text, Until: r.Until, Do: r.Do})
	}
	return a, nil
}

// searchedBlocks are those that one question for blocks with transactions looks at.
const searchedBlocks = 300

// Blocks implements source.Network.
func (v *ChainView) Blocks(ctx context.Context, before int64, limit int,
	busy bool) (list []api.Block, next int64, err error) {
	c, err := v.Client()
	if err != nil {
		return nil, 0, err
	}
	if before == 0 {
		head, err := c.Ledger.Head(ctx)
		if err != nil {
			return nil, 0, v.unanswered(err)
		}
		before = head.Height + 1
	}
	heights, next, err := v.heights(ctx, c, before, limit, busy)
	if err != nil {
		return nil, 0, err
	}
	for _, height := range heights {
		r, err := c.Ledger.Record(ctx, height)
		if errors.Is(err, client.ErrNotFound) {
			return list, 0, nil // older ones are not kept
		}
		if err != nil {
			return nil, 0, v.unanswered(err)
		}
		b := api.Block{Height: r.Height, Time: r.Time, Hash: r.Hash, AppHash: r.AppHash, Proposer: r.Proposer,
			Signed: r.Signed, Bytes: r.Bytes, Txs: []api.Tx{}}
		for _, t := range r.Txs {
			b.Txs = append(b.Txs, txOf(t))
		}
		list = append(list, b)
	}
	return list, next, nil
}

// heights are those of a page of blocks below a height, and below which the next one begins; 0: there is none.
func (v *ChainView) heights(ctx context.Context, c *client.Client, before int64, limit int,
	busy bool) (page []int64, next int64, err error) {
	if !busy {
		for height := before - 1; height > 0 && len(page) < limit; height-- {
			page = append(page, height)
		}
		return page, max(0, before-int64(limit)), nil
	}
	if page, err = c.Ledger.Busy(ctx, before, searchedBlocks); err != nil {
		return nil, 0, v.unanswered(err)
	}
	next = before - searchedBlocks
	if len(page) > limit {
		page, next = page[:limit], page[limit-1]
	}
	return page, max(0, next), nil
}

// Tx implements source.Network.
func (v *ChainView) Tx(ctx context.Context, hash string, height int64) (api.Tx, error) {
	c, err := v.Client()
	if err != nil {
		return api.Tx{}, err
	}
	t, err := c.Ledger.FindTx(ctx, hash, height)
	if err != nil {
		return api.Tx{}, v.unanswered(err)
	}
	return txOf(t), nil
}

func txOf(t ledger.Tx) api.Tx {
	shown := api.Tx{Hash: t.Hash, Height: t.Height, Code: t.Code, Log: t.Log, GasUsed: t.GasUsed,
		Messages: append([]string{}, t.Messages...), Signers: append([]string{}, t.Signers...), Bytes: t.Bytes,
		Fee: t.Fee, Memo: t.Memo, Transfers: []api.Transfer{}}
	for _, x := range t.Transfers {
		shown.Transfers = append(shown.Transfers, api.Transfer(x))
	}
	return shown
}

// LiveRun is the data of a run that its process has and its files do not: runs.Live.
type LiveRun struct {
	job      func() string
	View     *ChainView
	progress *ProgressGauges

	mu       sync.Mutex
	links    func(context.Context) ([]api.Link, error) // nil: there is no network yet
	asked    time.Time                                 // when the network had answered last
	asking   chan struct{}                             // closed when the network has answered; nil: it is not asked
	receipts []reward.Receipt
	books    runs.Payments
	err      error
}

// from says where the network of the run is asked who fetched from whom.
func (l *LiveRun) from(links func(context.Context) ([]api.Link, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.links = links
}

// booksAge is the age at which the receipts of an open run are asked for again, booksTimeout how long the network may
// take for them, and firstBooks how long the first ones are waited for.
const (
	booksAge     = 2 * time.Second
	booksTimeout = 20 * time.Second
	firstBooks   = time.Second
)

// Progress implements runs.Live.
func (l *LiveRun) Progress() runs.Progress {
	p := l.progress.Latest()
	return runs.Progress{Phase: p.Phase, Workers: p.Workers, PaidUzen: p.PaidUzen,
		SecondsLeft: math.Max(0, p.Left.Seconds()), Why: p.Waits}
}

// Books implements runs.Live. It returns the last answer of the network, and asks again if that is old. It waits a
// moment for the first answer, and for no other.
func (l *LiveRun) Books(ctx context.Context) (runs.Payments, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.links != nil && l.asking == nil && time.Since(l.asked) >= booksAge {
		l.asking = make(chan struct{})
		go l.ask(l.links, l.receipts)
	}
	if answered := l.asking; answered != nil && l.asked.IsZero() {
		l.mu.Unlock()
		select {
		case <-answered:
		case <-time.After(firstBooks):
		case <-ctx.Done():
		}
		l.mu.Lock()
	}
	if l.asked.IsZero() {
		return l.books, ErrNoChain
	}
	return l.books, l.err
}

// ask reads the books of the run; the receipts are those that are known.
func (l *LiveRun) ask(links func(context.Context) ([]api.Link, error), receipts []reward.Receipt) {
	ctx, cancel := context.WithTimeout(context.Background(), booksTimeout)
	defer cancel()
	receipts, books, err := l.read(ctx, links, receipts)
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.asking)
	l.asked, l.asking, l.err = time.Now(), nil, err
	if err == nil {
		l.receipts, l.books = receipts, books
	}
}

func (l *LiveRun) read(ctx context.Context, links func(context.Context) ([]api.Link, error),
	receipts []reward.Receipt) ([]reward.Receipt, runs.Payments, error) {
	var books runs.Payments
	c, err := l.View.Client()
	if err != nil {
		return nil, books, err
	}
	fresh, err := c.Training.ReceiptsFrom(ctx, l.job(), uint64(len(receipts)))
	if err != nil {
		return nil, books, err
	}
	games, err := c.Training.Disputes(ctx, l.job())
	if err != nil {
		return nil, books, err
	}
	if books.Links, err = links(ctx); err != nil {
		return nil, books, err
	}
	receipts = append(receipts, fresh...)
	for _, g := range games {
		books.Disputes = append(books.Disputes, shownDispute(rundir.NewDisputeRecord(g, 0, nil)))
	}
	books.Receipts = runs.Explain(receipts, books.Disputes)
	return receipts, books, nil
}

func shownDispute(d rundir.DisputeRecord) api.Dispute {
	return api.Dispute{Worker: d.Worker, Challenger: d.Challenger, Round: int(d.Round), Unit: d.Unit, Verdict: d.Verdict,
		Reason: d.Reason, Moves: d.Moves, HashBytes: d.HashBytes,
		Leaf: d.Leaf, LeafBytes: d.LeafBytes, LeafMS: d.LeafMS, Height: d.Height, Log: append([]api.Move{}, d.Log...)}
}
