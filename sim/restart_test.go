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
		tx := l.sign(t, worker, &banktypes.MsgSend{FromAddress: worker.Address(), ToAddress: keyOf("consumer").Address(),
			Amount: adapter.Coins(1)})
		if r := must(l.check(tx))(t); r.Code != 0 {
			t.Errorf("%s: %s", when, r.Log)
		}
	}
	for range 3 {
		must(l.block(context.Background(), w.clock.now))(t)
		w.clock.now += w.config.BlockTime
	}
	check("after a block")
	l.app = must(app.New(log.NewNopLogger(), l.db, l.config))(t)
	l.connection.app = l.app
	check("started again")
}
