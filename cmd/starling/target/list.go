package target

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
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
