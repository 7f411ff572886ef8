package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/protocol/market"
)

func (c *cli) market() *cobra.Command {
	return group("market", "See what is offered and asked on a network, and offer", `See the offers and the open orders of
a network, what would become of a job there, and offer work. docs/market.md says how they are matched and what is paid.`, c.marketQuote(), c.marketOffer(), c.marketPrice(), c.marketOffers(), c.marketOrders(), c.marketNodes())
}

func networkFlag(cmd *cobra.Command, network *string) {
	cmd.Flags().StringVar(network, "network", "", "HTTP interface of a validator, such as http://127.0.0.1:26601")
}

func wantNetwork(cmd *cobra.Command, network string) error {
	if network == "" {
		return usage(cmd, errors.New("--network is needed: the HTTP interface of a validator, such as "+
			"http://127.0.0.1:26601"))
	}
	return nil
}

func (c *cli) marketQuote() *cobra.Command {
	var network string
	var set []string
	cmd := &cobra.Command{
		Use:   "quote JOB.yaml --network URL",
		Short: "Say who would train a job, for how much and how long",
		Long: `Say what would become of a job on a network now: the offers whose seats would be drawn and how likely each is,
the price, the time that the training takes at the measured rates, and of every other offer why it cannot be drawn.
Nothing is ordered. A beacon that is not known before draws the seats, in proportion to stake, and all of a role are
paid the highest price that one of them asks. If the job would wait, the exit code is 7, or 6 if it is its budget that
is too small.

With -o json: {"job","matched","why","round_uzen","likely_uzen","whole_uzen","budget_uzen","work_price","audit_price",
"seconds","members":[{"id","role","price","class","region","odds"}],
"others":[{"id","role","price","class","region","why","text"}]}.`,
		Example: `  starling market quote examples/quickstart.yaml --network http://127.0.0.1:26601
  starling market quote job.yaml --network http://127.0.0.1:26601 --set resources.placement.regions=[eu]`,
		Args: exactly("JOB.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wantNetwork(cmd, network); err != nil {
				return err
			}
			j, err := loadJob(args[0], set)
			if err != nil {
				return err
			}
			q, err := plan.QuoteJob(cmd.Context(), j, network)
			if err != nil {
				return trainError(err)
			}
			if c.form.Machine() {
				err = c.form.Print(os.Stdout, terminal.One(q, q.Job))
			} else {
				err = printQuote(q)
			}
			return errors.Join(err, placed(q))
		},
	}
	networkFlag(cmd, &network)
	cmd.Flags().StringArrayVar(&set, "set", nil, "change a key of the job file: KEY=VALUE (repeatable)")
	return cmd
}

// placed is the error of a job that would not begin on a network now.
func placed(q *plan.Quote) error {
	switch {
	case q == nil || q.Matched:
		return nil
	case q.Why == market.BudgetTooSmall:
		return terminal.WithExit(&terminal.Problem{
			Code: "BUDGET_TOO_SMALL", What: "the job would wait on this network", Why: q.Why.Text(),
			Fix: "raise budget.max_cost or train fewer steps",
		}, terminal.ExitFunds)
	}
	return terminal.WithExit(&terminal.Problem{
		Code: "NO_PLACEMENT", What: "the job would wait on this network", Why: waiting(q),
		Fix: "ask for less in resources, strategy.workers or budget, as the offers that are not taken say, or wait for " +
			"others",
	}, terminal.ExitNoCapacity)
}

// waiting says why a job would wait, with how many offers fit of those that are needed.
func waiting(q *plan.Quote) string {
	fit := len(q.Members)
	for _, o := range q.Others {
		if o.Text == "" {
			fit++
		}
	}
	return fmt.Sprintf("%s: %d of %d that it takes fit", q.Why.Text(), fit, q.Wanted)
}

func printQuote(q *plan.Quote) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	if q.Matched {
		fmt.Fprintf(w, "price\t%s ZEN, and %s at most, of a budget of %s\n", terminal.Zen(q.Likely), terminal.Zen(q.Whole),
			terminal.Zen(q.Budget))
		took := "unknown: a machine was never measured"
		if q.Seconds > 0 {
			took = (time.Duration(q.Seconds) * time.Second).String()
		}
		fmt.Fprintf(w, "training\t%s\n", took)
		fmt.Fprintf(w, "paid\t%s ZEN per PFLOP (10^15 operations) to every worker, %s to every verifier, as one beacon "+
			"draws them\n", terminal.Zen(q.Work), terminal.Zen(q.Audit))
	} else {
		fmt.Fprintf(w, "waits\t%s\n", waiting(q))
	}
	for _, m := range q.Members {
		fmt.Fprintf(w, "%s\t%s\t%s ZEN\tdrawn with a chance of %.0f %%\n", m.Role, m.ID, terminal.Zen(m.Price), 100*m.Odds)
	}
	for _, o := range q.Others {
		fmt.Fprintf(w, "%s\t%s\t%s ZEN\t%s\n", o.Role, o.ID, terminal.Zen(o.Price), unfit(o.Text))
	}
	return w.Flush()
}

// unfit says why an offer cannot be drawn.
func unfit(why string) string {
	if why == "" {
		return "fits; the order waits for others"
	}
	return "not drawn: " + why
}

// seats is how many workers an order asks for.
func seats(least, most uint32) string {
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// devices are accelerators in words, as starling worker up takes them.
func devices(n uint32, model string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d", model, n)
}

func (c *cli) marketOffers() *cobra.Command {
	return netCommand(c, "offers", "List the offers, with what is known of who makes them", `List the offers of a network
as they are matched: those of pools one for each member, with the class, place and tier of who makes them, and the
slots that are left.

With -o json: {"offers":[{"id","role","price","slots","since","class","tier","memory_mib","upload_kbps","disk_mib","cpus",
"accelerators","accelerator_model","audits_passed","region","jurisdiction","domain","attested","rate","latency_ms","cover_uzen"}]}.`, `  starling market offers --network http://127.0.0.1:26601`,
		"offers", func(ctx context.Context, t *target) ([]offered, error) {
			lots, err := inspect.MarketOffers(ctx, t.network)
			return offersOf(lots), err
		},
		func(o offered) string { return o.ID },
		[]string{"ACCOUNT", "ROLE", "PRICE", "HOUR", "SLOTS", "CLASS", "TIER", "REGION", "JURISDICTION", "MEMORY",
			"+GFLOP/S", "+CPUS", "+ACCELERATORS", "+DISK", "+AUDITS PASSED", "+UPLOAD", "+LATENCY", "+DOMAIN", "+ATTESTED",
			"+COVER", "+SINCE HEIGHT"},
		func(o offered) []any {
			return []any{o.ID, o.Role, o.Price, amount(market.Hourly(o.Price, o.Rate)), o.Slots, o.Class, o.Tier, o.Region,
				o.Jurisdiction, unit(o.Memory, "MiB"),
				gigaflops(o.Rate), o.Cores, devices(o.Devices, o.Model), unit(o.Disk, "MiB"), o.Passed, unit(o.Upload, "kbit/s"),
				unit(uint64(o.Latency), "ms"), o.Domain, o.Attested, terminal.Zen(o.Cover) + " ZEN", o.Since}
		})
}

// unit is a quantity that is not known where it is 0.
func unit(n uint64, of string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n, " ", of)
}

// gigaflops are those of a machine that may not be measured.
func gigaflops(rate uint64) string {
	return positive(float64(rate)/1e9, func(x float64) string { return fmt.Sprintf("%.1f", x) })
}

func (c *cli) marketOrders() *cobra.Command {
	return netCommand(c, "orders", "List the open orders, and why each waits", `List the orders of a network that are not
matched yet, and why each waits.

With -o json: {"orders":[{"job","consumer","budget_uzen","price_cap","workers","most_workers","verifiers","since",
"expires","why"}]}.`, `  starling market orders --network http://127.0.0.1:26601`,
		"orders", func(ctx context.Context, t *target) ([]ordered, error) {
			orders, err := inspect.MarketOrders(ctx, t.network)
			return ordersOf(orders), err
		},
		func(o ordered) string { return o.Job },
		[]string{"JOB", "BUDGET", "CAP", "WORKERS", "WAITS BECAUSE", "+VERIFIERS", "+SINCE HEIGHT", "+UNTIL HEIGHT",
			"+CONSUMER"},
		func(o ordered) []any {
			return []any{o.Job, terminal.Zen(o.Budget) + " ZEN", o.PriceCap, seats(o.Workers, o.Most),
				market.Reason(o.Why).Text(), o.Verifiers, o.Since, whole(o.Expires), o.Consumer}
		})
}
