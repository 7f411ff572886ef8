package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	abci "github.com/cometbft/cometbft/abci/types"
	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/client/wallet"
)

// AccountTx is a transaction that an account made, or that moved its coins.
type AccountTx struct {
	Tx
	Received, Spent uint64 // uzen
}

// MaxHistory bounds the movements that one question brings: what CometBFT gives on one page.
const MaxHistory = 100

// History returns the latest transactions of an account, the newest first, at most limit. Payments of the chain itself,
// such as those for verified work, are in receipts.
func (l Ledger) History(ctx context.Context, address string, limit int) ([]AccountTx, error) {
	if err := wallet.CheckAddress(address); err != nil { // it becomes part of a query
		return nil, err
	}
	limit = min(max(limit, 1), MaxHistory)
	found := map[string]AccountTx{}
	for _, condition := range []string{"tx.acc_seq CONTAINS '%s/'", "coin_received.receiver='%s'",
		"coin_spent.spender='%s'"} {
		page := 1
		r, err := l.rpc.TxSearch(ctx, fmt.Sprintf(condition, address), false, &page, &limit, "desc")
		if err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
		for _, t := range r.Txs {
			m, err := movement(t, address)
			if err != nil {
				return nil, err
			}
			found[m.Hash] = m
		}
	}
	all := make([]AccountTx, 0, len(found))
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b AccountTx) int {
		return cmp.Or(cmp.Compare(b.Height, a.Height),
			cmp.Compare(a.Hash, b.Hash))
	})
	return all[:min(len(all), limit)], nil
}

func movement(t *ctypes.ResultTx, address string) (m AccountTx, err error) {
	var ok bool
	if m.Tx, ok = describe(t.Tx); !ok {
		return m, fmt.Errorf("client: transaction %s is of no kind that is known", t.Hash)
	}
	m.Height, m.Code, m.Log, m.GasUsed = t.Height, t.TxResult.Code, t.TxResult.Log, t.TxResult.GasUsed
	if m.Received, err = moved(t.TxResult.Events, "coin_received", "receiver", address); err != nil {
		return m, err
	}
	m.Spent, err = moved(t.TxResult.Events, "coin_spent", "spender", address)
	return m, err
}

// moved sums the uzen of the events of a kind that are about an account.
func moved(events []abci.Event, kind, who, address string) (sum uint64, err error) {
	for _, e := range events {
		var about bool
		var amount string
		for _, a := range e.Attributes {
			about = about || a.Key == who && a.Value == address
			if a.Key == sdk.AttributeKeyAmount {
				amount = a.Value
			}
		}
		if e.Type != kind || !about {
			continue
		}
		coins, err := sdk.ParseCoinsNormalized(amount)
		if err != nil {
			return 0, fmt.Errorf("client: an event of %q: %w", amount, err)
		}
		n := coins.AmountOf(adapter.Denom)
		if !n.IsUint64() {
			return 0, fmt.Errorf("client: an event of %s", n)
		}
		sum += n.Uint64()
	}
	return sum, nil
}
