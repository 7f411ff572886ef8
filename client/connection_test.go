package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	abci "github.com/cometbft/cometbft/abci/types"
	rpcclient "github.com/cometbft/cometbft/rpc/client"
	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	cmttypes "github.com/cometbft/cometbft/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	chainmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/training"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/books"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
)

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	c := n.clients["consumer"]
	const many = 50
	var pending []*client.Pending
	for i := range many {
		o := order(fmt.Sprintf("job-%d", i))
		o.Budget = 1000
		p, err := c.SubmitAsync(n.ctx, message(c, o))
		n.must(err)
		pending = append(pending, p)
	}
	last := int64(0)
	for _, p := range pending {
		r, err := p.Wait(n.ctx)
		n.must(err)
		if r.Height < last {
			t.Errorf("block %d after block %d", r.Height, last)
		}
		last = r.Height
	}
	// Another process with the same key has used the account: the client finds the sequence again.
	other := client.New(n.validator.Client(), key("consumer"))
	defer other.Close()
	n.must(other.Market.Order(n.ctx, order("other"), nil))
	n.must(c.Market.Order(n.ctx, order("again"), nil))
	n.balance("consumer", funds-many*1000-2*order("").Budget)
}

func message(c *client.Client, o market.Order) *marketpb.MsgOrder {
	return &marketpb.MsgOrder{
		Sender: c.Address(), Terms: runpb.FromTerms(o.Terms), Budget: o.Budget, PriceCap: o.PriceCap,
		WorkersMin: o.Workers.Min, WorkersTarget: o.Workers.Target, WorkersMax: o.Workers.Max, Verifiers: o.Verifiers,
	}
}

func TestRestartContinues(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0")
	n.enlist("w0", crew.Worker, 7)
	n.must(n.clients["consumer"].Market.Order(n.ctx, order("job"), nil))
	height := n.height(n.clients["w0"])
	n.validator.Stop()
	if _, err := n.clients["w0"].Blocks(n.ctx); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after the stop: %v", err)
	}
	n.open("consumer", "w0")
	if after := n.height(n.clients["w0"]); after <= height {
		t.Errorf("height %d after a restart at height %d", after, height)
	}
	offers, err := n.clients["w0"].Market.Offers(n.ctx)
	n.must(err)
	if len(offers) != 1 || offers[0].Price != 7 {
		t.Errorf("offers after the restart: %+v", offers)
	}
	n.must(n.clients["consumer"].Market.CancelOrder(n.ctx, "job"))
	n.balance("consumer", funds-coin.Zen().WaitingFee(0))
}

func TestHostileMessages(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	c := n.clients["consumer"]
	m := message(c, order("job"))
	m.Terms.SpecCID = "\xff\xfe"
	if _, err := c.Submit(n.ctx, m); err == nil {
		t.Error("a string that is not UTF-8 is taken")
	}
	m = message(c, order("job"))
	m.Terms.Spec = make([]byte, 33)
	_, err := c.Submit(n.ctx, m)
	n.refused(err, runpb.ErrDigest, "market", 12)
	m = message(c, order("job"))
	m.Sender = key("somebody").Address()
	if _, err := c.Submit(n.ctx, m); err == nil {
		t.Error("a message in somebody else's name is taken")
	}
	n.must(c.Market.Order(n.ctx, order("job"), nil))
}

func TestOverHTTP(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	rpc := n.dial()
	c := client.New(rpc, key("consumer"))
	defer c.Close()
	n.must(c.Market.Order(n.ctx, order("job"), nil))
	n.refused(c.Market.Order(n.ctx, order("job"), nil), chainmarket.ErrTaken, "market", 5)
	if _, err := c.Training.Run(n.ctx, "job"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a run that has not begun: %v", err)
	}
}

// counted is a validator of which it is known how many blocks it was asked for.
type counted struct {
	rpcclient.Client
	blocks atomic.Int32
}

func (c *counted) Block(ctx context.Context, height *int64) (*ctypes.ResultBlock, error) {
	c.blocks.Add(1)
	return c.Client.Block(ctx, height)
}

// A transaction is found by its hash where the validator has an index, however old it is, and where it has none.
func TestFindTransaction(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	find := func(rpc rpcclient.Client) int32 {
		t.Helper()
		asked := &counted{Client: rpc}
		c := client.New(asked, key("consumer"))
		defer c.Close()
		sent, err := c.Coins.Send(n.ctx, c.Address(), coin.Coin{}, 1, "")
		n.must(err)
		for range 3 {
			n.height(c)
		}
		asked.blocks.Store(0)
		if found, err := c.Ledger.FindTx(n.ctx, strings.ToLower(sent.Hash), 0); err != nil || found.Height != sent.Height ||
			!strings.EqualFold(found.Hash, sent.Hash) {
			t.Errorf("%+v (%v), sent %+v", found, err, sent)
		}
		return asked.blocks.Load()
	}
	if blocks := find(n.validator.Client()); blocks < 4 {
		t.Errorf("without an index %d blocks were asked for", blocks)
	}
	rpc := n.dial()
	if blocks := find(rpc); blocks > 2 {
		t.Errorf("with an index %d blocks were asked for", blocks)
	}
}

func TestLargestLeafFits(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "v0")
	n.enlist("w0", crew.Worker, 1)
	n.enlist("v0", crew.Verifier, 1)
	o := order("job")
	o.Workers = market.Workers{Min: 1, Target: 1, Max: 1}
	n.must(n.clients["consumer"].Market.Order(n.ctx, o, nil))
	n.until(n.clients["w0"], "job", func(s run.State) bool { return s.Phase == progress.Train })
	leaf := dispute.Move{Leaf: &dispute.Leaf{Payload: make([]byte, dispute.MaxLeaf)}}
	n.refused(n.clients["v0"].Work.Move(n.ctx, "job", work.UnitID{}, leaf), training.ErrNoDispute, "training", 17)
}

// relay passes TCP connections on to an address. When deaf is set, no byte comes back from subscriptions to events, as
// when a link is cut and neither end closes the connection.
type relay struct {
	net.Listener
	deaf   atomic.Bool
	events chan *net.TCPConn // the client's side of subscriptions, as they are made
}

func relayTo(t *testing.T, address string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, events: make(chan *net.TCPConn, 8)}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", address)
			if err != nil {
				_ = in.Close()
				continue
			}
			go r.pass(in, out)
		}
	}()
	return r
}

func (r *relay) pass(in, out net.Conn) {
	defer in.Close()
	defer out.Close()
	buffered := bufio.NewReader(in)
	head, _ := buffered.Peek(len("GET /websocket"))
	events := string(head) == "GET /websocket"
	if events {
		r.events <- in.(*net.TCPConn)
	}
	go func() {
		_, _ = io.Copy(out, buffered)
	}()
	b := make([]byte, 4096)
	for {
		n, err := out.Read(b)
		if err != nil {
			return
		}
		if events && r.deaf.Load() {
			continue
		}
		if _, err := in.Write(b[:n]); err != nil {
			return
		}
	}
}

// relayed starts a network and a client that hears of its blocks through a relay.
func relayed(t *testing.T) (n *network, r *relay, c *client.Client, blocks <-chan client.Block) {
	t.Helper()
	n = start(t, "consumer")
	n.serve()
	r = relayTo(t, n.config.RPC)
	c, err := client.Connect("http://"+r.Addr().String(), key("consumer"))
	n.must(err)
	t.Cleanup(c.Close)
	blocks, err = c.Blocks(n.ctx)
	n.must(err)
	return n, r, c, blocks
}

// A client whose events stop without an error continues: it asks for blocks, and its messages get through.
func TestSilentSubscription(t *testing.T) {
	t.Parallel()
	n, r, c, blocks := relayed(t)
	begin := (<-blocks).Height
	r.deaf.Store(true)
	for b := range blocks {
		if b.Height > begin+5 {
			break
		}
	}
	n.must(c.Market.Order(n.ctx, order("job"), nil))
	n.must(n.ctx.Err())
}

// A client whose subscription ends with its connection, as a validator ends it if the client reads too slowly,
// subscribes again over another connection.
func TestEventsAfterReset(t *testing.T) {
	t.Parallel()
	n, r, c, blocks := relayed(t)
	asked := func() *net.TCPConn {
		t.Helper()
		select {
		case c := <-r.events:
			return c
		case <-n.ctx.Done():
			t.Fatal("nobody asks for events")
			return nil
		}
	}
	first := asked()
	<-blocks
	n.must(errors.Join(first.SetLinger(0), first.Close())) // with a reset
	second := asked()
	<-blocks
	n.must(second.Close())
	asked()
	n.height(c)
}

// A client that knows several validators continues with another when its current one is gone.
func TestAnotherValidator(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	n.serve()
	r := relayTo(t, n.config.RPC)
	c, err := client.Connect("http://127.0.0.1:1,http://"+r.Addr().String()+",http://"+n.config.RPC, key("consumer"))
	n.must(err)
	defer c.Close()
	n.must(c.Market.Order(n.ctx, order("job"), nil))
	r.deaf.Store(true)
	n.must(r.Close())
	n.must(c.Market.Order(n.ctx, order("other"), nil))
	if _, err := client.Connect("127.0.0.1:1", key("consumer")); err == nil || !strings.Contains(err.Error(), "http://") {
		t.Errorf("an address without a scheme: %v", err)
	}
}

// A client of a validator that is stopped gets the reason, and continues with another if it knows one.
func TestStoppedValidator(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	n.serve()
	full := httptest.NewServer(&endpoint.Halted{Code: "DISK_FULL", Why: "no room", Fix: "make room"})
	defer full.Close()
	_, err := client.Connect(full.URL, key("consumer"))
	if s, ok := errors.AsType[*endpoint.Halted](err); !ok || s.Code != "DISK_FULL" || s.Why != "no room" ||
		s.Fix != "make room" {
		t.Errorf("a validator that is stopped: %v", err)
	}
	c, err := client.Connect(full.URL+",http://"+n.config.RPC, key("consumer"))
	n.must(err)
	defer c.Close()
	n.must(c.Market.Order(n.ctx, order("job"), nil))
}

// starting is a validator that catches up with the others for a while, and takes no transactions until then.
type starting struct {
	rpcclient.Client
	asked atomic.Int32
}

func (s *starting) BroadcastTxSync(ctx context.Context, tx cmttypes.Tx) (*ctypes.ResultBroadcastTx, error) {
	if s.asked.Add(1) < 3 {
		return nil, errors.New("endpoint is closed while node is catching up")
	}
	return s.Client.BroadcastTxSync(ctx, tx)
}

func (s *starting) Status(ctx context.Context) (*ctypes.ResultStatus, error) {
	status, err := s.Client.Status(ctx)
	if err == nil {
		status.SyncInfo.CatchingUp = s.asked.Load() < 3
	}
	return status, err
}

// forgetful is a validator that loses the first transaction that it takes.
type forgetful struct {
	rpcclient.Client
	lost atomic.Bool
}

func (f *forgetful) BroadcastTxSync(ctx context.Context, tx cmttypes.Tx) (*ctypes.ResultBroadcastTx, error) {
	if f.lost.CompareAndSwap(false, true) {
		return &ctypes.ResultBroadcastTx{}, nil
	}
	return f.Client.BroadcastTxSync(ctx, tx)
}

// A transaction that the validator has lost is sent again, by itself and when another one after it is refused.
func TestLostTransaction(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	for _, jobs := range [][]string{{"a"}, {"b", "c", "d"}} {
		c := client.New(&forgetful{Client: n.validator.Client()}, key("consumer"))
		defer c.Close()
		before := n.height(c)
		var pending []*client.Pending
		for _, job := range jobs {
			p, err := c.SubmitAsync(n.ctx, message(c, order(job)))
			n.must(err)
			pending = append(pending, p)
		}
		last := before
		for i, p := range pending {
			r, err := p.Wait(n.ctx)
			n.must(err)
			if r.Height < last || r.Height > before+20 {
				t.Errorf("job %s is ordered in block %d, after %d and %d", jobs[i], r.Height, before, last)
			}
			last = r.Height
		}
	}
}

// disordered is a validator whose next block has the first transaction that it takes before one that goes before it.
type disordered struct {
	rpcclient.Client
	early atomic.Pointer[cmttypes.Tx]
	taken atomic.Bool
}

func (d *disordered) BroadcastTxSync(ctx context.Context, tx cmttypes.Tx) (*ctypes.ResultBroadcastTx, error) {
	if d.taken.CompareAndSwap(false, true) {
		d.early.Store(&tx)
		return &ctypes.ResultBroadcastTx{}, nil
	}
	return d.Client.BroadcastTxSync(ctx, tx)
}

func (d *disordered) Subscribe(ctx context.Context, who, query string,
	capacity ...int) (<-chan ctypes.ResultEvent, error) {
	events, err := d.Client.Subscribe(ctx, who, query, capacity...)
	if err != nil {
		return nil, err
	}
	told := make(chan ctypes.ResultEvent, cap(events))
	go func() {
		for e := range events {
			b := e.Data.(cmttypes.EventDataNewBlock)
			if tx := d.early.Swap(nil); tx != nil {
				wrong := sdkerrors.ErrWrongSequence
				b.Block = &cmttypes.Block{Header: b.Block.Header, Data: cmttypes.Data{Txs: append(slices.Clip(b.Block.Txs), *tx)}}
				b.ResultFinalizeBlock.TxResults = append(slices.Clip(b.ResultFinalizeBlock.TxResults),
					&abci.ExecTxResult{Codespace: wrong.Codespace(), Code: wrong.ABCICode()})
				e.Data = b
			}
			told <- e
		}
	}()
	return told, nil
}

// A transaction that was executed before its turn, and so failed, gets its turn.
func TestTransactionOutOfTurn(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	d := &disordered{Client: n.validator.Client()}
	c := client.New(d, key("consumer"))
	defer c.Close()
	n.must(c.Market.Order(n.ctx, order("job"), nil))
	if !d.taken.Load() || d.early.Load() != nil {
		t.Error("it was not out of turn")
	}
}

// newborn is a validator that has made no block when it is asked first.
type newborn struct {
	rpcclient.Client
	asked atomic.Int32
}

func (n *newborn) Status(ctx context.Context) (*ctypes.ResultStatus, error) {
	status, err := n.Client.Status(ctx)
	if err == nil && n.asked.Add(1) == 1 {
		status.SyncInfo.LatestBlockHeight = 0
	}
	return status, err
}

// hasty is a validator that has a block which its application has not executed.
type hasty struct{ rpcclient.Client }

func (h hasty) Status(ctx context.Context) (*ctypes.ResultStatus, error) {
	status, err := h.Client.Status(ctx)
	if err == nil {
		status.SyncInfo.LatestBlockHeight += 1000
	}
	return status, err
}

// The head of the chain is a block whose state can be asked for.
func TestHeadHasAState(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	c := client.New(hasty{n.validator.Client()}, key("consumer"))
	defer c.Close()
	n.must(c.Ready(n.ctx))
	head, err := c.Ledger.Head(n.ctx)
	n.must(err)
	_, err = books.Count(n.ctx, c.At(head.Height))
	n.must(err)
}

// A client of a network before its first block waits for one.
func TestReady(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	c := client.New(&newborn{Client: n.validator.Client()}, key("consumer"))
	defer c.Close()
	before := n.height(n.clients["consumer"])
	n.must(c.Ready(n.ctx))
	if after := n.height(c); after <= before {
		t.Errorf("ready at height %d, and it was %d before", after, before)
	}
	n.must(c.Ready(n.ctx)) // at once
}

// A message to a validator that still catches up waits for it.
func TestValidatorThatCatchesUp(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	c := client.New(&starting{Client: n.validator.Client()}, key("consumer"))
	defer c.Close()
	n.must(c.Market.Order(n.ctx, order("job"), nil))
}
