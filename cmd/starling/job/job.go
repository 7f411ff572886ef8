// Package job is starling job: commands that make job files, and that list, follow, steer, copy and verify jobs. Jobs
// are started by starling train, and on servers by starling job submit.
package job

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/cmd/starling/federated"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/source"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/coins"
)

// Command is starling job.
func Command(c *terminal.Console) *cobra.Command {
	return usage.Group("job", "Make job files, see jobs, steer and verify them",
		`Make and check job files; see the jobs of a folder of runs, of a server (--api) or of a network (--network);
and steer a job that was ordered on a network, by its name there, as starling job list and starling market orders show
it.`,
		jobfile.InitCommand(c), VerifyCommand(c), ExplainCommand(c), ExportMetricsCommand(c), listCommand(c),
		getCommand(c), watchCommand(c), logsCommand(c), eventsCommand(c), metricsCommand(c), receiptsCommand(c),
		disputesCommand(c), lineageCommand(c), workersCommand(c), costCommand(c), compareCommand(c), exportCommand(c),
		validateCommand(c), planCommand(c), submitCommand(c), jobfile.ImportCommand(c), jobfile.SchemaCommand(c),
		federated.Command(c),
		stepCommand(c, "pause", "Let no further round begin",
			`Let no further round of a run begin until it is resumed. Rounds under way are finished, checked and paid. A
pause that takes longer than the network allows ends the job.`,
			withMessage(module.Market.PauseJob, "paused %s: no further round begins")),
		stepCommand(c, "resume", "End a pause", "Let the rounds of a paused run begin again.",
			withMessage(module.Market.ResumeJob, "resumed %s")),
		cancelCommand(c),
		topUpCommand(c))
}

func stepCommand(c *terminal.Console, verb, short, long string,
	do func(module.Market, context.Context, string) (string, error)) *cobra.Command {
	var home, network string
	cmd := &cobra.Command{
		Use: verb + " JOB --home DIR --network URL", Short: short,
		Long:    long + "\n\nWith -o json: {\"job\",\"done\"}.",
		Example: fmt.Sprintf("  starling job %s job-7f3a --home net/consumer --network http://127.0.0.1:26601", verb),
		Args:    usage.Exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return steer(c, cmd, home, network, args[0], verb,
				func(ctx context.Context, cl *client.Client) (string, error) { return do(cl.Market, ctx, args[0]) })
		},
	}
	target.HomeFlag(cmd, &home)
	target.NetworkFlag(cmd, &network)
	return cmd
}

// cancelCommand takes back an order of an account, or a job that was submitted to a server.
func cancelCommand(c *terminal.Console) *cobra.Command {
	cmd := stepCommand(c, "cancel", "Take an order back, or end its run",
		`Take an order back: at once, with the whole budget, if it is not matched yet. Of one that runs no further
round begins; those under way are finished, checked and paid, and what is not spent returns then.

With --api: cancel a job that was submitted to a server, by the name that it has there; the job is printed as
starling job get prints it.`, cancelOrder)
	cmd.Use = "cancel JOB"
	cmd.Example += "\n  starling job cancel quickstart --api http://127.0.0.1:7300"
	var p source.Place
	p.Server(cmd)
	atNetwork := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if p.API == "" || cmd.Flags().Changed("home") || cmd.Flags().Changed("network") {
			return atNetwork(cmd, args)
		}
		a, err := p.Open(cmd, "")
		if err != nil {
			return err
		}
		defer a.Close()
		j, err := a.Cancel(cmd.Context(), args[0])
		switch {
		case err != nil:
			return source.Explain(err)
		case c.Form.Machine():
			return c.Form.Print(os.Stdout, terminal.One(j, j.ID))
		}
		return printJob(j)
	}
	return cmd
}

// withMessage does a step, and returns a message that it is done.
func withMessage(step func(module.Market, context.Context, string) error,
	text string) func(module.Market, context.Context, string) (string, error) {
	return func(m module.Market, ctx context.Context, job string) (string, error) {
		return fmt.Sprintf(text, job), step(m, ctx, job)
	}
}

// cancelOrder takes an order back, and says what becomes of its budget.
func cancelOrder(m module.Market, ctx context.Context, job string) (string, error) {
	if err := m.CancelOrder(ctx, job); err != nil {
		return "", err
	}
	e, err := m.Escrow(ctx, job)
	if err != nil {
		return "", err
	}
	o, err := m.PlacedOrder(ctx, job)
	if err != nil || e.Refunded == 0 {
		return "cancelled " + job + ": rounds under way are finished and paid, and what is not spent returns then", err
	}
	return fmt.Sprintf("cancelled %s; %s were released", job, o.Coin.Text(e.Refunded)), nil
}

func topUpCommand(c *terminal.Console) *cobra.Command {
	var home, network string
	cmd := &cobra.Command{
		Use: "top-up JOB AMOUNT --home DIR --network URL", Short: "Add to the budget of a job",
		Long: `Add to the budget of a job: one that waits for a larger budget, with on_exceed: pause, continues. The
rest returns at the end. AMOUNT is in the coin of the order: 2.5 for ZEN, 2.5usdc for another one.

With -o json: {"job","done"}.`,
		Example: "  starling job top-up job-7f3a 2.5 --home net/consumer --network http://127.0.0.1:26601",
		Args:    usage.Exactly("JOB", "AMOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantCoins(cmd, args[1]); err != nil {
				return err
			}
			return steer(c, cmd, home, network, args[0], "top-up", func(ctx context.Context, cl *client.Client) (string, error) {
				amount, err := coins.Parse(ctx, cl.Market, args[1])
				if err != nil {
					return "", err
				}
				return fmt.Sprintf("added %s to the budget of %s", amount, args[0]),
					cl.Market.TopUpJob(ctx, args[0], amount.Coin, amount.Grains)
			})
		},
	}
	target.HomeFlag(cmd, &home)
	target.NetworkFlag(cmd, &network)
	return cmd
}

func steer(c *terminal.Console, cmd *cobra.Command, home, network, job, verb string,
	step func(context.Context, *client.Client) (string, error)) error {
	if home != "" { // else act says that it is needed
		if err := target.WantNetwork(cmd, network); err != nil {
			return err
		}
	}
	t := target.Target{Home: home, Network: network}
	var text string
	err := t.Act(cmd, "the folder of the account that ordered the job",
		func(ctx context.Context, cl *client.Client) (err error) {
			text, err = step(ctx, cl)
			return err
		})
	if err != nil {
		return err
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(map[string]string{"job": job, "done": verb}, job))
	}
	fmt.Println(text)
	return nil
}
