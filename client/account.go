package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	abci "github.com/cometbft/cometbft/abci/types"
	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"

	"github.com/starling-network/starling/chain/adapter"
)

// Send moves coins of the account, in uzen, to another one, which exists from then on. The memo is a note that
// everybody reads, such as the number that an exchange asks for; it may be empty.
func (c *Client) Send(ctx context.Context, to string, amount uint64, memo string) (Result, error) {
	m := &banktypes.MsgSend{FromAddress: c.Address(), ToAddress: to, Amount: adapter.Coins(amount)}
	if c.submit != nil {
		return c.submit(ctx, m)
	}
	p, err := c.submitNoted(ctx, memo, m)
	if err != nil {
		return Result{}, err
	}
	return p.Wait(ctx)
}

// Transactions is how many transactions an account has made, or ErrNotFound: an account exists once it has coins.
func (c *Client) Transactions(ctx context.Context, address string) (uint64, error) {
	a, err := c.info(ctx, address)
	return a.GetSequence(), err
}

// AccountTx is a transaction that an account made, or that moved its coins.
type AccountTx struct {
	Tx
	Received, Spent uint64 // uzen
}

// MaxHistory bounds the movements that one question brings: what CometBFT gives on one page.
const MaxHistory = 100

// History are the latest movements of an account, the newest first, at most limit. What the chain pays by itself, such
// as for verified work, is in receipts.
func (c *Client) History(ctx context.Context, address string, limit int) ([]AccountTx, error) {
	if err := CheckAddress(address); err != nil { // it becomes part of a query
		return nil, err
	}
	limit = min(max(limit, 1), MaxHistory)
	found := map[string]AccountTx{}
	for _, condition := range []string{"tx.acc_seq CONTAINS '%s/'", "coin_received.receiver='%s'",
		"coin_spent.spender='%s'"} {
		page := 1
		r, err := c.rpc.TxSearch(ctx, fmt.Sprintf(condition, address), false, &page, &limit, "desc")
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

// Operates reports whether the account operates a validator.
func (c *Client) Operates(ctx context.Context) (bool, error) {
	address, err := sdk.AccAddressFromBech32(c.Address())
	if err != nil {
		return false, err
	}
	_, err = stakingtypes.NewQueryClient(c.conn).Validator(ctx,
		&stakingtypes.QueryValidatorRequest{ValidatorAddr: sdk.ValAddress(address).String()})
	if err = known(err); errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
