package source

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
)

// JobCommand is a command about one job: ask answers for it, whole is the answer for programs, and print shows it to
// people.
func JobCommand[T any](c *terminal.Console, use, short, long, example string,
	ask func(cmd *cobra.Command, a *Client, j api.Job) (T, error), whole func(T) terminal.Answer,
	print func(T, terminal.Form) error) *cobra.Command {
	var p Place
	cmd := &cobra.Command{
		Use: use + " JOB", Short: short, Example: example,
		Long: long + "\n\n" + JobNames,
		Args: usage.Exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, j, err := p.Find(cmd, args[0])
			if err != nil {
				return err
			}
			defer a.Close()
			answer, err := ask(cmd, a, j)
			if err != nil {
				return Explain(err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, whole(answer))
			}
			return print(answer, c.Form)
		},
	}
	p.Flags(cmd)
	return cmd
}

// JobNames is what the help of commands says about their argument.
const JobNames = `JOB is the identifier of a job at the place that is asked, its name, or the beginning of its
identifier; or the folder of its run. The place is a folder of runs (--dir), the server of starling web (--api), or a
network (--network), whose chain knows what was ordered, attested, disputed and paid, and neither losses nor logs.`
