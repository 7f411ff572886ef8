// Package income is the commands about the pay of a worker: an estimate before it joins, and every amount since.
package income

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/receipt"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/estimate"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/node/valued"
)

// EarningsAnswer is about receipts of many jobs: a name is a job and a number.
func EarningsAnswer(account string, received, lost uint64, days []api.EarnedDay,
	found []rundir.Explanation, came *estimate.Came, worth *valued.Sum) terminal.Answer {
	if found == nil {
		found = []rundir.Explanation{}
	}
	whole := map[string]any{"account": account, "received_uzen": received, "lost_uzen": lost, "days": days,
		"jobs": rundir.ByJob(found), "receipts": found}
	if coins := rundir.ByCoin(found); len(coins) > 0 {
		whole["coins"] = coins
	}
	if came != nil {
		whole["estimate"] = came
	}
	if worth != nil {
		whole["value"] = worth
	}
	return terminal.List(whole, found, func(e rundir.Explanation) string { return fmt.Sprintf("%s %d", e.Job, e.Seq) })
}

// EarningsCommand is starling worker earnings.
func EarningsCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var account, table string
	var in worth
	var sums bool
	cmd := &cobra.Command{
		Use:   "earnings --home DIR",
		Short: "Explain every amount that an account earned or lost",
		Long: `Explain every amount that an account earned or lost on a network, also those of nothing: first
the sums of every day, in UTC, the latest first, and of every job, then the rewards of epochs, the latest first, then
the receipts of every job. --sums stops after the sums. A validator that does not keep all blocks does not know
the days of older receipts. If starling worker estimate left an estimate in the folder, it is compared with the income
since, and with that since the first pay after it: a machine is measured and seated first. starling worker hours has
the reason of every hour, also of those without pay.

--csv writes every amount into a file for the books of its owner, the oldest first: time, amount, coin, job, kind,
height, transaction, reason. An amount that was taken is negative; deposits and refunds, which are the account's own
coins, are left out. Payments of final rounds and of epochs come from the rules of a block and have no transaction.

--in UNIT --rates FILE adds what the amounts were worth in a unit of yours, such as EUR, by the rates of your file:
CSV with the line day,coin,rate, then a line for each day and coin with the price of one coin in the unit. A rate holds
for its day in UTC and the six after it, until the next; one without a day holds where no other does. No network and no
program vouches for a rate: take those that your tax office accepts. An amount without a rate is an error.

With -o json: {"account","received_uzen","lost_uzen","days":[{"day","received_uzen","lost_uzen","receipts","unpaid"}],
"jobs":[{"job","received_uzen","lost_uzen","receipts","unpaid"}],"receipts":[as of starling job explain],"estimate":
{"at","height","day":{"low_uzen","median_uzen","high_uzen"},"days","earned_day","since_first_pay":{"days","earned_day",
"off"}},"coins":[{"coin","received","lost"}]},
the estimate if the folder has one, and with --in "value":{"unit","received","lost"}. Sums of days and jobs are in ZEN;
coins has amounts in other coins, in grains.`,
		Example: `  starling worker earnings --home net/worker-0
  starling worker earnings --home net/worker-0 --sums
  starling worker earnings --home net/worker-0 --csv 2026.csv
  starling worker earnings --home net/worker-0 --in EUR --rates rates.csv --csv 2026.csv
  starling worker earnings --account starling1qx... --network http://127.0.0.1:26601 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.Settle(cmd); err != nil {
				return err
			}
			if t.Account == "" {
				t.Account = account
			}
			if t.Account == "" {
				return usage.Error(cmd, fmt.Errorf("--home or --account is needed"))
			}
			if err := target.WantAddress(t.Account); err != nil {
				return err
			}
			if (in.unit == "") != (in.rates == "") {
				return usage.Error(cmd, errors.New("--in and --rates belong together"))
			}
			if table != "" {
				return writeBookings(cmd.Context(), c, t, in, table)
			}
			return earned(cmd.Context(), c, t, in, sums)
		},
	}
	t.Flags(cmd)
	cmd.Flags().StringVar(&account, "account", "", "account, in place of that of a folder")
	cmd.Flags().BoolVar(&sums, "sums", false, "only the sums of days and jobs")
	cmd.Flags().StringVar(&table, "csv", "", "file for a table of every amount; - is standard output")
	cmd.Flags().StringVar(&in.unit, "in", "", "unit in which to value the amounts, such as EUR")
	cmd.Flags().StringVar(&in.rates, "rates", "", "file of rates in that unit: day,coin,rate")
	cmd.Flags().BoolVar(&sums, "jobs", false, "")
	_ = cmd.Flags().MarkDeprecated("jobs", "use --sums") // the flag is there
	return cmd
}

// earned shows the amounts of an account.
func earned(ctx context.Context, c *terminal.Console, t target.Target, in worth, sums bool) error {
	found, days, err := inspect.Earnings(ctx, t.Network, t.Account)
	if err != nil {
		return err
	}
	var received, lost uint64
	for _, e := range found {
		if !e.Coin.Own() {
			continue // rundir.ByCoin has it
		}
		if e.Kind.Lost() {
			lost += e.Amount
		} else {
			received += e.Amount
		}
	}
	came, err := sinceEstimate(ctx, t, found)
	if err != nil {
		return err
	}
	_, value, err := in.bookings(ctx, t)
	if err != nil {
		return err
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, EarningsAnswer(t.Account, received, lost, days, found, came, value))
	}
	fmt.Printf("%s received %s ZEN and lost %s ZEN of its stake or to its delegators\n", t.Account,
		terminal.Zen(received), terminal.Zen(lost))
	for _, s := range rundir.ByCoin(found) {
		fmt.Printf("%s received %s and lost %s of its stake in it or to its delegators\n", t.Account,
			s.Coin.Text(s.Received), s.Coin.Amount(s.Lost))
	}
	if value != nil {
		fmt.Printf("that was worth %[1]s %[2]s received and %[3]s %[2]s lost, by the rates of %[4]s, for which no network "+
			"vouches\n",
			value.Received, value.Unit, value.Lost, in.rates)
	}
	if came != nil {
		printCame(came)
	}
	if err := printSums(c, days, rundir.ByJob(found)); err != nil || sums {
		return err
	}
	for _, e := range found {
		fmt.Println()
		fmt.Println(e.Job)
		receipt.Print(e)
	}
	return nil
}

// sinceEstimate compares the estimate that the folder of a worker keeps with its income since; nil: there is none.
func sinceEstimate(ctx context.Context, t target.Target, found []rundir.Explanation) (*estimate.Came, error) {
	if t.Home == "" {
		return nil, nil
	}
	kept, err := estimate.Read(t.Home)
	if kept == nil || err != nil {
		return nil, err
	}
	c, head, err := session.DialReadOnly(ctx, t.Network)
	if err != nil {
		return nil, err
	}
	c.Close()
	var pays []estimate.Pay
	for _, e := range found {
		if !e.Kind.Lost() && e.Coin.Own() {
			pays = append(pays, estimate.Pay{Height: e.Height, Amount: e.Amount})
		}
	}
	came := kept.Came(pays, head.Height, time.Now())
	return &came, nil
}

// printCame prints an estimate and the income since.
func printCame(came *estimate.Came) {
	const settles = 1. / 24 // days in which work that began after an estimate becomes final, and is paid
	since := "since then it received " + zenText(came.Earned) + " a day"
	if came.Days < settles {
		since = "less than an hour ago, so that the income since does not compare yet"
	}
	fmt.Printf("estimated %s: %s ZEN a day (low %s, high %s); %s\n", came.At.Format(time.DateTime),
		zenText(came.Income.Median), zenText(came.Income.Low), zenText(came.Income.High), since)
	if s := came.Since; s != nil {
		fmt.Printf("since its first pay, %.1f days ago, it received %s a day: the estimate differs by %+.0f %%\n", s.Days,
			zenText(s.Earned), 100*s.Off)
	}
}

// worth is the unit in which amounts are valued, and the file of rates. Without a unit they are not.
type worth struct{ unit, rates string }

// bookings are the amounts of an account with their values, and the sums of these; nil without a unit.
func (w worth) bookings(ctx context.Context, t target.Target) ([]inspect.Booking, *valued.Sum, error) {
	if w.unit == "" {
		return nil, nil, nil
	}
	f, err := os.Open(w.rates)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	rates, err := valued.Read(f, w.unit)
	if err != nil {
		return nil, nil, w.explain(err)
	}
	list, err := inspect.Bookings(ctx, t.Network, t.Account)
	if err != nil {
		return nil, nil, err
	}
	sum, err := rates.Value(list)
	return list, &sum, w.explain(err)
}

// explain explains the errors of rates.
func (w worth) explain(err error) error {
	p := &terminal.Problem{}
	switch {
	case errors.Is(err, valued.ErrRates):
		p.Code, p.Fix = "RATES", "write day,coin,rate in the first line, and such lines as 2026-11-30,zen,0.25 after it"
	case errors.Is(err, valued.ErrNone):
		p.Code, p.Fix = "RATE_MISSING", "add a line with the rate: a line without a day holds where no other does"
	default:
		return err
	}
	p.What = fmt.Sprintf("%s: %v", w.rates, err)
	return terminal.WithExit(p, terminal.ExitUsage)
}

// writeBookings writes the amounts of an account as CSV.
func writeBookings(ctx context.Context, c *terminal.Console, t target.Target, in worth, path string) error {
	list, value, err := in.bookings(ctx, t)
	if err == nil && value == nil {
		list, err = inspect.Bookings(ctx, t.Network, t.Account)
	}
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return inspect.WriteCSV(w, list, value != nil) }
	if path == "-" {
		return write(os.Stdout)
	}
	if err := folder.WriteFileBy(path, write); err != nil {
		return err
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(map[string]any{"file": path, "amounts": len(list)}, path))
	}
	fmt.Printf("%s: %d amounts of %s\n", path, len(list), t.Account)
	return nil
}

// printSums shows what every day and every job paid and took.
func printSums(c *terminal.Console, days []api.EarnedDay, jobs []rundir.JobSum) error {
	if len(jobs) == 0 {
		return nil
	}
	fmt.Println()
	w := terminal.NewColumns(os.Stdout, c.Form, "DAY", "RECEIVED", "LOST", "RECEIPTS", "OF THEM UNPAID")
	for _, d := range days {
		w.Row(cmp.Or(d.Day, "before"), terminal.Zen(d.ReceivedUzen), terminal.Zen(d.LostUzen), d.Receipts, d.Unpaid)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println()
	w = terminal.NewColumns(os.Stdout, c.Form, "JOB", "RECEIVED", "LOST", "RECEIPTS", "OF THEM UNPAID")
	for _, s := range jobs {
		w.Row(s.Job, terminal.Zen(s.ReceivedUzen), terminal.Zen(s.LostUzen), s.Receipts, s.Unpaid)
	}
	return w.Flush()
}
