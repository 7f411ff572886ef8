package quote

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/protocol/market"
)

// Placed is the error of a job that would not begin on a network now.
func Placed(q *plan.Quote) error {
	switch {
	case q == nil || q.Matched:
		return nil
	case q.Why == market.BudgetTooSmall:
		return terminal.WithExit(&terminal.Problem{
			Code: "BUDGET_TOO_SMALL", What: "the job would wait on this network", Why: q.Why.Text(),
			Fix: raise(q),
		}, terminal.ExitFunds)
	}
	return terminal.WithExit(&terminal.Problem{
		Code: "NO_PLACEMENT", What: "the job would wait on this network", Why: waiting(q),
		Fix: "ask for less in resources, strategy.workers or budget, as the offers that are not taken say, or wait for " +
			"others",
	}, terminal.ExitNoCapacity)
}

// raise says which budget would be enough.
func raise(q *plan.Quote) string {
	if q.Whole <= q.Budget { // the prices of those who would be drawn are not known
		return "raise budget.max_cost or train fewer steps"
	}
	return fmt.Sprintf("give --set budget.max_cost=%d, or train fewer steps", (q.Whole+999_999)/1_000_000)
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

// Print shows a quote: the price and the members that would be drawn, or why the job would wait.
func Print(q *plan.Quote) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	if q.Matched {
		fmt.Fprintf(w, "price\t%s, and %s at most, of a budget of %s\n", q.Coin.Text(q.Likely), q.Coin.Amount(q.Whole),
			q.Coin.Amount(q.Budget))
		took := "unknown: a machine was never measured"
		if q.Seconds > 0 {
			took = (time.Duration(q.Seconds) * time.Second).String()
		}
		fmt.Fprintf(w, "training\t%s\n", took)
		fmt.Fprintf(w, "paid\t%s per PFLOP (10^15 operations) to every worker, %s to every verifier, as one beacon "+
			"draws them\n", q.Coin.Text(q.Work), q.Coin.Amount(q.Audit))
		if q.Draw > 0 {
			fmt.Fprintf(w, "\t%s per PFLOP to every generator, for answers\n", q.Coin.Text(q.Draw))
		}
	} else {
		fmt.Fprintf(w, "waits\t%s\n", waiting(q))
	}
	for _, m := range q.Members {
		fmt.Fprintf(
			w,
			"%s\t%s\t%s\tdrawn with a chance of %.0f %%\n",
			m.Role,
			m.ID,
			m.Coin.Text(m.Price),
			100*m.Likelihood,
		)
	}
	for _, o := range q.Others {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", o.Role, o.ID, o.Coin.Text(o.Price), unfit(o.Text))
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
