package dev

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
)

// ExitCodesCommand is starling dev exit-codes.
func ExitCodesCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "Show the exit codes of every command", Long: terminal.ExitCodesText(),
		Example: "  starling dev exit-codes -o json", Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !c.Form.Machine() {
				return cmd.Help()
			}
			return c.Form.Print(os.Stdout, terminal.ExitCodesAnswer())
		},
	}
}

// manDate is on every page, so that the same version gives the same bytes.
var manDate = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// ManCommand is starling dev man, over the commands of root.
func ManCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands",
		Long: `Write a manual page (troff) for every command to a folder, which is made if it is missing. They say what --help
says.`,
		Example: `  starling dev man ~/.local/share/man/man1
  man starling-train`,
		Args: usage.Exactly("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("cannot write manual pages: %w", err)
			}
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &manDate, Source: "starling", Manual: "Starling"},
				args[0])
		},
	}
}
