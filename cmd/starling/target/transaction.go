package target

import (
	"fmt"
	"os"

	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/cmd/starling/terminal"
)

// Done says that a transaction is in a block.
func Done(c *terminal.Console, r transaction.Result, err error, what string) error {
	if err != nil {
		return err
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(map[string]any{"height": r.Height, "hash": r.Hash}, r.Hash))
	}
	_, err = fmt.Printf("%s, in block %d\n", what, r.Height)
	return err
}
