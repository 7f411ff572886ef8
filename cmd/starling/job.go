package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/terminal"
)

func (c *cli) job() *cobra.Command {
	return group("job", "Make job files, see jobs, steer and verify them", `Make and check job files; see the jobs of a
folder of runs, of a server (--api) or of a network (--network); and steer a job that was ordered on a network, by its
name there, as starling job list and starling market orders show it.`,
		c.init(), c.verify(), c.explain(), c.export(),
		c.jobList(), c.jobGet(), c.jobWatch(), c.jobLogs(), c.jobEvents(), c.jobMetrics(), c.jobReceipts(), c.jobDisputes(),
		c.jobLineage(), c.jobWorkers(), c.jobCost(), c.jobCompare(),
		c.jobExport(), c.jobValidate(), c.jobPlan(), c.jobSubmit(), c.jobImport(), c.jobSchema(),
		c.jobStep("pause", "Let no further round begin", `Let no further round of a run begin until it is resumed. Rounds
under way are finished, checked and paid. A pause that takes longer than the network allows ends the job.`, (*client.Client).PauseJob),
		c.jobStep("resume", "End a pause", "Let the rounds of a paused run begin again.", (*client.Client).ResumeJob),
		c.jobStep("cancel", "Take an order back, or end its run", `Take an order back: at once, with the whole budget, if it
is not matched yet. Of one that runs no further round begins; those under way are finished, checked and paid, and what
is not spent returns then.`, (*client.Client).CancelOrder),
		c.jobTopUp())
}

func (c *cli) jobStep(verb, short, long string,
	step func(*client.Client, context.Context, string) error) *cobra.Command {
	var home, network string
	cmd := &cobra.Command{
		Use: verb + " JOB --home DIR --network URL", Short: short,
		Long:    long + "\n\nWith -o json: {\"job\",\"done\"}.",
		Example: fmt.Sprintf("  starling job %s job-7f3a --home net/consumer --network http://127.0.0.1:26601", verb),
		Args:    exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.steer(cmd, home, network, args[0], verb,
				func(ctx context.Context, cl *client.Client) error { return step(cl, ctx, args[0]) })
		},
	}
	homeFlag(cmd, &home)
	networkFlag(cmd, &network)
	return cmd
}

func (c *cli) jobTopUp() *cobra.Command {
	var home, network string
	cmd := &cobra.Command{
		Use: "top-up JOB ZEN --home DIR --network URL", Short: "Add to the budget of a job",
		Long: `Add to the budget of a job: one that waits for a larger budget, with on_exceed: pause, goes on. What is not
spent returns at the end.

With -o json: {"job","done"}.`,
		Example: "  starling job top-up job-7f3a 2.5 --home net/consumer --network http://127.0.0.1:26601",
		Args:    exactly("JOB", "ZEN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := wantAmount(cmd, args[1])
			if err != nil {
				return err
			}
			return c.steer(cmd, home, network, args[0], "top-up", func(ctx context.Context, cl *client.Client) error {
				return cl.TopUpJob(ctx, args[0], amount)
			})
		},
	}
	homeFlag(cmd, &home)
	networkFlag(cmd, &network)
	return cmd
}

func homeFlag(cmd *cobra.Command, home *string) {
	cmd.Flags().StringVar(home, "home", "", "folder of the account that ordered the job")
}

func (c *cli) steer(cmd *cobra.Command, home, network, job, verb string,
	step func(context.Context, *client.Client) error) error {
	if home != "" { // else act says that it is needed
		if err := wantNetwork(cmd, network); err != nil {
			return err
		}
	}
	t := target{home: home, network: network}
	if err := t.act(cmd, "the folder of the account that ordered the job", step); err != nil {
		return err
	}
	if c.form.Machine() {
		return c.form.Print(os.Stdout, terminal.One(map[string]string{"job": job, "done": verb}, job))
	}
	fmt.Printf("%s: the network has taken the %s\n", job, verb)
	return nil
}
