package usage

import (
	"strings"

	"github.com/spf13/cobra"
)

// Group is a command that only holds others. Its help shows their examples.
func Group(name, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Long: long, Args: Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	var examples []string
	for _, c := range commands {
		first, _, _ := strings.Cut(c.Example, "\n")
		examples = append(examples, first)
	}
	examples = examples[:min(len(examples), groupExamples)]
	cmd.Example = strings.Join(examples, "\n")
	return cmd
}

// groupExamples is how many commands of a group have their first example in the help of the group.
const groupExamples = 3
