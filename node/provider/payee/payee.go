// Package payee names the account that is paid in the place of a worker on the network, and says to its owner from when
// on. It pays nothing.
package payee

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/protocol/registry"
)

// Name names the account that is paid in the place of a worker, if another is named now; "": that does not change.
func Name(ctx context.Context, c *client.Client, to string, say func(string)) error {
	if to == "" {
		return nil
	}
	id := c.Address()
	p, err := c.Registry.Participant(ctx, id)
	if err != nil {
		return err
	}
	head, err := c.Ledger.Head(ctx)
	if err != nil {
		return err
	}
	if registry.Pays(p, head.Height) != to && (p.Payee.From == 0 || p.Payee.Next != to) {
		if err := c.Registry.SetPayee(ctx, id, to); err != nil {
			return err
		}
		if p, err = c.Registry.Participant(ctx, id); err != nil {
			return err
		}
	}
	if registry.Pays(p, head.Height) == to {
		say("its pay, and its stake when it is withdrawn, go to " + to)
		return nil
	}
	say(fmt.Sprintf("its pay goes to %s, and to %s from block %d on; the key of the first changes that at once, with "+
		"starling account payee", registry.Pays(p, head.Height), to, p.Payee.From))
	return nil
}
