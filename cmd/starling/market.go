package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node"
	"github.com/starling-network/starling/protocol/market"
)

func (c *cli) market() *cobra.Command {
	return group("market", "See what is offered and asked on a network", `See the offers and the open orders of a network, and what would become of a job there. docs/market.md says how
they are matched and what is paid.`, c.marketQuote(), c.marketPrice(), c.marketOffers(), c.marketOrders(), c.marketNodes())
}

func networkFlag(cmd *cobra.Command, network *string) {
	cmd.Flags().StringVar(network, "network", "", "HTTP interface of a validator, such as http://127.0.0.1:26601")
}

func wantNetwork(cmd *cobra.Command, network string) error {
	if network == "" {
		return usage(cmd, errors.New("--network is needed: the HTTP interface of a validator, such as http://127.0.0.1:26601"))
	}
	return nil
}

func (c *cli) marketQuote() *cobra.Command {
	var network string
	var set []string
	cmd := &cobra.Command{
		Use:   "quote JOB.yaml --network URL",
		Short: "Say who would train a job, for how much and how long",
		Long: `Say what would become of a job on a network now: the offers that would be taken, the price, the time that the
training takes at the measured rates, and of every other offer why it would not be taken. Nothing is ordered.
Between offers that are equal in everything the beacon decides, which is not known before. If the job would wait,
the exit code is 7, or 6 if it is its budget that is too small.

With -o json: {"job","matched","why","round_uzen","likely_uzen","whole_uzen","budget_uzen","seconds",
"members":[{"id","role","price"}],"others":[{"id","role","price","class","region","why","text"}]}.`,
		Example: `  starling market quote examples/quickstart.yaml --network http://127.0.0.1:26601
  starling market quote job.yaml --network http://127.0.0.1:26601 --set resources.placement.regions=[eu]`,
		Args: exactly("JOB.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wantNetwork(cmd, network); err != nil {
				return err
			}
			j, err := job.Load(args[0], set...)
			if err != nil {
				return terminal.WithExit(err, terminal.ExitUsage)
			}
			q, err := node.QuoteJob(cmd.Context(), j, network)
			if err != nil {
				return trainError(err)
			}
			if c.form.Machine() {
				err = c.form.Print(os.Stdout, quoteAnswer(q))
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
func placed(q *node.Quote) error {
	switch {
	case q == nil || q.Matched:
		return nil
	case q.Why == market.BudgetTooSmall:
		return terminal.WithExit(&terminal.Problem{
			Code: "BUDGET_TOO_SMALL", What: "the job would wait on this network", Why: whyWaits[q.Why], Fix: "raise budget.max_cost or train fewer steps",
		}, terminal.ExitFunds)
	}
	return terminal.WithExit(&terminal.Problem{
		Code: "NO_PLACEMENT", What: "the job would wait on this network", Why: whyWaits[q.Why], Fix: "ask for less in resources, strategy.workers or budget, as the offers that are not taken say, or wait for others",
	}, terminal.ExitNoCapacity)
}

func printQuote(q *node.Quote) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	if q.Matched {
		fmt.Fprintf(w, "price\t%s ZEN, and %s at most, of a budget of %s\n", terminal.Zen(q.Likely), terminal.Zen(q.Whole), terminal.Zen(q.Budget))
		took := "unknown: a machine was never measured"
		if q.Seconds > 0 {
			took = (time.Duration(q.Seconds) * time.Second).String()
		}
		fmt.Fprintf(w, "training\t%s\n", took)
	} else {
		fmt.Fprintf(w, "waits\t%s\n", whyWaits[q.Why])
	}
	for _, m := range q.Members {
		fmt.Fprintf(w, "%s\t%s\t%d uzen\ttaken\n", m.Role, m.ID, m.Price)
	}
	for _, o := range q.Others {
		fmt.Fprintf(w, "%s\t%s\t%d uzen\tnot taken: %s\n", o.Role, o.ID, o.Price, o.Text)
	}
	return w.Flush()
}

// whyWaits says why an order is not matched.
var whyWaits = map[market.Reason]string{
	market.TooFewWorkers: "too few workers offer", market.TooFewVerifiers: "too few verifiers offer",
	market.ConditionsUnmet: "too few offers keep the conditions", market.TooFewDomains: "those that keep the conditions are in too few failure domains",
	market.PriceAboveCap: "too few ask at most the cap", market.BudgetTooSmall: "the budget does not cover a round",
}

func (c *cli) marketOffers() *cobra.Command {
	var network string
	cmd := &cobra.Command{
		Use:   "offers --network URL",
		Short: "List the offers, with what is known of who makes them",
		Long: `List the offers of a network as they are matched: those of pools one for each member, with the class, place and
tier of who makes them, and the slots that are left.

With -o json: {"offers":[{"id","role","price","slots","since","class","tier","memory_mib","upload_kbps","region",
"jurisdiction","domain","attested","rate","latency_ms","cover_uzen"}]}.`,
		Example: `  starling market offers --network http://127.0.0.1:26601`,
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := wantNetwork(cmd, network); err != nil {
				return err
			}
			lots, err := node.MarketOffers(cmd.Context(), network)
			if err != nil {
				return err
			}
			if c.form.Machine() {
				return c.form.Print(os.Stdout, offersAnswer(lots))
			}
			return printOffers(lots, c.form)
		},
	}
	networkFlag(cmd, &network)
	return cmd
}

func printOffers(lots []market.Lot, f terminal.Form) error {
	w := terminal.NewColumns(os.Stdout, f, "ACCOUNT", "ROLE", "PRICE", "HOUR", "SLOTS", "CLASS", "TIER", "REGION", "JURISDICTION", "MEMORY",
		"+GFLOP/S", "+UPLOAD", "+LATENCY", "+DOMAIN", "+ATTESTED", "+COVER", "+SINCE HEIGHT")
	for _, l := range lots {
		var hour, rate, latency, memory, upload string
		if l.Memory > 0 {
			memory = fmt.Sprintf("%d MiB", l.Memory)
		}
		if l.Upload > 0 {
			upload = fmt.Sprintf("%d kbit/s", l.Upload)
		}
		if l.Rate > 0 {
			hour, rate = terminal.Zen(market.Hourly(l.Price, l.Rate))+" ZEN", fmt.Sprintf("%.1f", float64(l.Rate)/1e9)
		}
		if l.Latency > 0 {
			latency = fmt.Sprintf("%d ms", l.Latency)
		}
		w.Row(l.ID, l.Role, l.Price, hour, l.Slots, l.Class, l.Tier, l.Region, l.Jurisdiction, memory,
			rate, upload, latency, l.Domain, l.Attested, terminal.Zen(l.Cover)+" ZEN", l.At)
	}
	return w.Flush()
}

func (c *cli) marketOrders() *cobra.Command {
	var network string
	cmd := &cobra.Command{
		Use:   "orders --network URL",
		Short: "List the open orders, and why each waits",
		Long: `List the orders of a network that are not matched yet, and why each waits.

With -o json: {"orders":[{"job","consumer","budget_uzen","price_cap","workers","verifiers","expires","why"}]}.`,
		Example: `  starling market orders --network http://127.0.0.1:26601`,
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := wantNetwork(cmd, network); err != nil {
				return err
			}
			orders, err := node.MarketOrders(cmd.Context(), network)
			if err != nil {
				return err
			}
			if c.form.Machine() {
				return c.form.Print(os.Stdout, ordersAnswer(orders))
			}
			w := terminal.NewColumns(os.Stdout, c.form, "JOB", "BUDGET", "CAP", "WORKERS", "WAITS BECAUSE", "+VERIFIERS", "+NEAR", "+SINCE HEIGHT", "+UNTIL HEIGHT", "+CONSUMER")
			for _, o := range orders {
				until := "" // it waits as long as it takes
				if o.Deadline > 0 {
					until = strconv.FormatInt(o.Deadline, 10)
				}
				w.Row(o.ID, terminal.Zen(o.Budget)+" ZEN", o.PriceCap, fmt.Sprintf("%d to %d", o.Workers.Min, o.Workers.Max), whyWaits[market.Reason(o.Why)], o.Verifiers, o.Near, o.At, until, o.Consumer)
			}
			return w.Flush()
		},
	}
	networkFlag(cmd, &network)
	return cmd
}
