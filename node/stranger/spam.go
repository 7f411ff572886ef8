package stranger

import (
	"context"
	"fmt"

	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/client"
)

// spam sends transactions from the attacker's account, which pays for each.
func (a *assault) spam(ctx context.Context) error {
	h, err := a.key()
	if err != nil {
		return err
	}
	c, err := client.Connect(a.nodes[0], h.Account())
	if err != nil {
		return err
	}
	defer c.Close()
	me := c.Address()
	if has, err := c.Coins.Balance(ctx, me); err != nil || has == 0 {
		return cannotSpam(me, err)
	}
	own := &banktypes.MsgSend{FromAddress: me, ToAddress: me, Amount: adapter.Coins(1)}
	for ctx.Err() == nil {
		if _, err := c.SubmitAsync(ctx, own); err != nil {
			pause(ctx, refused)
			continue
		}
		a.count(func(r *Report) { r.Transactions++ })
	}
	return nil
}

func cannotSpam(account string, err error) error {
	if err != nil {
		return err
	}
	return &Error{fmt.Sprintf("stranger: %s has no coins to pay for transactions", account),
		"send it some: starling account send " + account + " 100 --home DIR --network URL"}
}
