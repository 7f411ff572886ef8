package target

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/protocol/coin"
)

// ListCommand is a command that asks a network for a list.
func ListCommand[T any](c *terminal.Console, use, short, long, example, key string,
	ask func(ctx context.Context, t *Target) ([]T, error), name func(T) string, titles []string,
	row func(T) []any) *cobra.Command {
	var t Target
	cmd := &cobra.Command{
		Use: use + " --network URL", Short: short, Long: long, Example: example, Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.Settle(cmd); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			all, err := ask(ctx, &t)
			if err != nil {
				return err
			}
			return terminal.PrintList(c.Form, key, all, name, titles, row)
		},
	}
	t.Flags(cmd)
	return cmd
}

// Asks are the prices of a participant for 10^15 operations, in each coin that it takes; nothing if it offers no work.
func Asks(p api.Participant) string {
	var texts []string
	if p.Offers && (p.Price > 0 || len(p.Asks) == 0) {
		texts = append(texts, coin.Coin{}.Text(p.Price))
	}
	for _, a := range p.Asks {
		texts = append(texts, api.CoinOf(a.Coin).Text(a.Price))
	}
	return strings.Join(texts, ", ")
}
