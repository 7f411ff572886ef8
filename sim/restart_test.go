package sim

import (
	"context"
	"testing"

	"cosmossdk.io/log/v2"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/app"
)

// A validator takes transactions as soon as it is started again, before the next block.
func TestTransactionsAfterARestart(t *testing.T) {
	w := must(New(small(t)))(t)
	l := w.ledger
	worker := keyOf("worker-2")
	check := func(when string) {
		t.Helper()
		tx := sign(t, l, worker, &banktypes.MsgSend{FromAddress: worker.Address(), ToAddress: keyOf("consumer").Address(),
			Amount: adapter.Coins(1)})
		if r := must(l.Check(tx))(t); r.Code != 0 {
			t.Errorf("%s: %s", when, r.Log)
		}
	}
	for range 3 {
		must(l.Block(context.Background(), w.clock.Now))(t)
		w.clock.Now += w.config.BlockTime
	}
	check("after a block")
	l.App = must(app.New(log.NewNopLogger(), l.DB, l.Config))(t)
	check("started again")
}
