package client_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cometbft/cometbft/libs/bytes"
	rpcclient "github.com/cometbft/cometbft/rpc/client"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/run/crew"
)

// On a new chain, whose validator asks for the price of the chain, the first transactions of a provider cost it
// nothing, those after them what the chain asks, and coins that are sent pay from the first.
func TestFees(t *testing.T) {
	t.Parallel()
	n := &network{t: t, ctx: t.Context(), config: chain.Config{
		Home: t.TempDir(), ChainID: "test", BlockTime: 50 * time.Millisecond, Log: t.Output(), GasPrice: chain.Governed,
		Accounts: []chain.Funded{{Address: key("provider").Address(), Amount: funds},
			{Address: key("friend").Address(), Amount: funds}},
	}}
	n.open("provider", "friend", "newcomer")
	t.Cleanup(func() { n.validator.Stop() })
	provider, friend := n.clients["provider"], n.clients["friend"]
	balance := func(name string) uint64 {
		b, err := n.clients[name].Coins.Balance(n.ctx, key(name).Address())
		n.must(err)
		return b
	}

	newcomer := n.clients["newcomer"]
	reserve, err := friend.Reserve(n.ctx)
	n.must(err)
	_, err = friend.Coins.Send(n.ctx, newcomer.Address(), coin.Coin{}, stake+reserve, "")
	n.must(err)
	n.enlist("newcomer", crew.Verifier, 10)
	if b := balance("newcomer"); b != reserve {
		t.Errorf("who was sent its stake and %d uzen has %d when it has joined", reserve, b)
	}
	_, err = newcomer.Coins.Send(n.ctx, friend.Address(), coin.Coin{}, 1000, "")
	n.must(err)
	if b := balance("newcomer"); b >= reserve-1000 || b < reserve*9/10 {
		t.Errorf("of %d uzen %d are left after a transfer", reserve, b)
	}

	had := balance("friend")
	_, err = friend.Coins.Send(n.ctx, provider.Address(), coin.Coin{}, 1000, "")
	n.must(err)
	if b := balance("friend"); b >= had-1000 {
		t.Errorf("who sent 1000 of %d uzen has %d: it paid no fee", had, b)
	}
	n.enlist("provider", crew.Worker, 10)
	if b := balance("provider"); b != funds+1000-stake {
		t.Errorf("a provider has %d uzen after it registered and offered, with a stake of %d of %d", b, stake, funds+1000)
	}
	_, sent, err := provider.Sequence(n.ctx)
	n.must(err)
	for ; sent < app.FreeTransactions; sent++ { // refused, as it has no tier, and in a block all the same
		_, err := provider.SubmitAsync(n.ctx, &registrypb.MsgHeartbeat{Sender: provider.Address()})
		n.must(err)
	}
	n.must(provider.Market.Offer(n.ctx, crew.Worker, 11, 1))
	if b := balance("provider"); b >= funds+1000-stake {
		t.Errorf("transaction %d of a provider cost it nothing", app.FreeTransactions+1)
	}

	// A client that is interrupted after the refusal of a transaction without a fee does not report that refusal.
	ctx, cancel := context.WithCancel(n.ctx)
	c := client.New(&interrupted{Client: n.validator.Client(), cancel: cancel}, key("provider"))
	defer c.Close()
	err = c.Market.Offer(ctx, crew.Worker, 12, 1)
	if _, refused := errors.AsType[*transaction.Error](err); !errors.Is(err, context.Canceled) || refused {
		t.Errorf("interrupted: %v", err)
	}
}

// interrupted ends a context when a transaction is refused, and answers no query from then on.
type interrupted struct {
	rpcclient.Client
	cancel func()
	ended  atomic.Bool
}

func (i *interrupted) ABCIQueryWithOptions(ctx context.Context, path string, data bytes.HexBytes,
	o rpcclient.ABCIQueryOptions) (*coretypes.ResultABCIQuery, error) {
	if i.ended.Load() {
		return nil, context.Canceled
	}
	return i.Client.ABCIQueryWithOptions(ctx, path, data, o)
}

func (i *interrupted) BroadcastTxSync(ctx context.Context, tx cmttypes.Tx) (*coretypes.ResultBroadcastTx, error) {
	r, err := i.Client.BroadcastTxSync(ctx, tx)
	if err == nil && transaction.Unpaid(transaction.Refusal(r.Codespace, r.Code, r.Log)) {
		i.ended.Store(true)
		i.cancel()
	}
	return r, err
}
