package income

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/flagfile"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/accelerator/admission"
	"github.com/starling-network/starling/node/accelerator/shared"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/estimate"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
)

// estimateAnswer is an estimate, for programs.
type estimateAnswer struct {
	Measured bool `json:"measured_here"` // false: the network measured the machine of the account
	*estimate.Report
	Electricity *estimate.Balance `json:"electricity,omitempty"`
	Capacity    *capacityAnswer   `json:"capacity,omitempty"` // nil: the network measured the machine of the account
}

// estimateOptions are the flags of the command.
type estimateOptions struct {
	target  target.Target
	machine estimate.Machine
	tier    string
	device  admission.Choice
	threads int
	power   estimate.Power
	disk    disk.Share
}

const estimateHelp = `Estimate the income of this machine on a network, before it joins: measure its speed as the
network would, for eight seconds, and read the pay of the workers of the network in the last day, and the orders that
would take its offer. The memory of --memory is measured by writing and reading all of it, the disk by a file of 64 MiB
in --home or the current folder, and round trips to participants that the beacon draws. Nothing is registered, and no
account is needed.

The day is that of a machine of this speed: a quarter of the measured workers earned less than the low figure for
their speed, a quarter more than the high one. Workers without pay count. A machine that joins takes its share of the
same orders, so low and median are less by that; high is for orders that grow with it. Where runs in progress have a
free place that takes its offer, the median is of the pay there in the next seven days: the units of a round are dealt
to their workers and to the machine, which makes the rounds shorter, until the rounds or the budget are at an end.
The first day brings less: a machine is measured first, and paid once its units are final. "At most" is the
pay of a machine that trains all the time at its price. Seats of orders are drawn by stake (docs/market.md), so a worker
with more stake than others earns more than the estimate.

--watts and --kwh-price, in any currency, add the electricity: the price that a ZEN must have in that
currency to pay for it and, with --zen-price, what is left of a day.

With --home of a worker that the network has measured, nothing is measured: its registration and its offer count. The
estimate is kept in estimate.json of the folder, and starling worker earnings compares it with the income since.

With -o json: {"measured_here","height","window_seconds","class","rate","workers","paid_workers","day":{"low_uzen",
"median_uzen","high_uzen"},"places":[{"job","share","round_blocks","round_blocks_with","round_uzen","rounds",
"start_blocks","chance"}],"most_uzen","price","orders":[{"job","open","mismatch","text","do","budget_uzen",
"coin"}],"more_orders","raises":[{"name","tier","lacks","weighs_ppm","now_ppm"}],"standby_ppm","committed_ppm",
"electricity":{"kwh","cost","break_even_zen_price","net"},"capacity":{"memory":{"declared_mib","available_mib",
"touched_mib","bytes_per_second"},"disk":{"free_mib","share_mib","write_bytes_per_second","read_bytes_per_second",
"error"},"peers":[{"id","round_trip_ms","error"}]}}.`

// EstimateCommand is starling worker estimate.
func EstimateCommand(c *terminal.Console) *cobra.Command {
	var o estimateOptions
	cmd := &cobra.Command{
		Use:   "estimate --network URL",
		Short: "Estimate what this machine would earn on a network",
		Long:  estimateHelp,
		Example: `  starling worker estimate --network http://127.0.0.1:26601
  starling worker estimate --network http://127.0.0.1:26601 --memory 16000 --upload 20000 --watts 90 --kwh-price 0.31
  starling worker estimate --home net/worker-0 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.power.Watts < 0 || o.power.PerKWh < 0 || o.power.OfAZen < 0 {
				return usage.Error(cmd, errors.New("--watts, --kwh-price and --zen-price are 0 or more"))
			}
			if (o.power.Watts > 0) != (o.power.PerKWh > 0) {
				return usage.Error(cmd, errors.New("--watts and --kwh-price belong together"))
			}
			if err := o.target.Settle(cmd); err != nil {
				return err
			}
			return runEstimate(cmd, c, &o)
		},
	}
	f := cmd.Flags()
	o.target.Flags(cmd)
	usage.ThreadsFlag(cmd, &o.threads)
	f.Var(&o.device, "device", "what computes exact units, and is measured: cpu, auto, opencl or opencl:N, as of "+
		"starling worker up")
	h := &o.machine.Hardware
	f.Uint64Var(&h.Memory, "memory", 0, "MiB that the worker would offer; 0: it declares none, as starling worker up")
	o.disk = member.DefaultDisk
	f.Var(&o.disk, "disk", "what blobs may take: a size such as 20GiB, or a part of the free disk")
	f.Uint64Var(&h.Upload, "upload", 0, "kbit/s that it would promise to peers")
	f.Uint32Var(&h.Cores, "cpus", uint32(kernel.Cores), "cores that a job may use")
	f.StringVar(&h.Region, "region", "", "where it is, such as eu-north")
	f.StringVar(&h.Jurisdiction, "jurisdiction", "", "ISO 3166 code of the country")
	f.Var(flagfile.OneOf(&o.tier, "none", "bronze", "silver", "gold"), "tier", "uptime that it would commit to")
	f.Uint64Var(&o.machine.Price, "price", market.DefaultPrice, "uzen that it would ask for 10^15 operations")
	f.Uint64Var(&o.machine.Stake, "stake", registry.DefaultStake, "uzen that it would stake")
	f.Float64Var(&o.power.Watts, "watts", 0, "power that the machine takes for the work")
	f.Float64Var(&o.power.PerKWh, "kwh-price", 0, "price of a kilowatt-hour, in any currency")
	f.Float64Var(&o.power.OfAZen, "zen-price", 0, "price of a ZEN in the same currency")
	return cmd
}

func runEstimate(cmd *cobra.Command, c *terminal.Console, o *estimateOptions) error {
	ctx := cmd.Context()
	a, m := &estimateAnswer{}, &o.machine
	if o.target.Account != "" {
		registered, err := estimate.Registered(ctx, o.target.Network, o.target.Account)
		if err != nil {
			return err
		}
		if registered != nil {
			m = registered
		}
	}
	if m.Rate == 0 {
		a.Measured = true
		m.Tier, _ = registry.ParseTier(o.tier)
		err := o.measure(ctx, c)
		if err == nil {
			a.Capacity, err = o.capacity(ctx, c)
		}
		if err != nil {
			return cause.Measurement(cmd, err)
		}
	}
	var err error
	if a.Report, err = estimate.Ask(ctx, o.target.Network, *m); err != nil {
		return err
	}
	if o.power.Watts > 0 {
		b := o.power.Balance(a.Income)
		a.Electricity = &b
	}
	if o.target.Home != "" {
		if err := estimate.Keep(o.target.Home, a.Report, time.Now()); err != nil {
			return err
		}
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.Figures(a))
	}
	return printEstimate(a)
}

// measuredFor is how long a worker measures a machine.
const measuredFor = 8 * time.Second

func (o *estimateOptions) measure(ctx context.Context, c *terminal.Console) error {
	d, err := shared.Open(ctx, admission.Options{Choice: o.device, Say: c.Say}, nil)
	if err != nil {
		return err
	}
	defer d.Close()
	_, o.machine.Hardware = d.Declare(o.machine.Hardware)
	c.Say(fmt.Sprintf("measuring this machine for %s", measuredFor))
	o.machine.Measured, err = estimate.Measure(ctx, d, o.threads, measuredFor)
	return err
}

func printEstimate(a *estimateAnswer) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "machine\t%s operations a second, class %s\n", terminal.Number(float64(a.Rate)), a.Class)
	fmt.Fprintf(w, "network\t%s, %d of them paid in the last %s\n", terminal.Counted(a.Workers, "measured worker"), a.Paid,
		terminal.Span(time.Duration(a.Seconds*float64(time.Second))))
	printCapacity(w, a.Capacity)
	if a.Workers > 0 || len(a.Places) > 0 {
		of := "as workers did for their speed"
		if len(a.Places) > 0 {
			of = "in a free place of a run"
		}
		fmt.Fprintf(w, "earns\t%s ZEN a day (low %s, high %s), %s\n", zenText(a.Income.Median), zenText(a.Income.Low),
			zenText(a.Income.High), of)
	} else {
		fmt.Fprintf(w, "earns\tunknown: no measured worker offers work\n")
	}
	printPlaces(w, a.Places)
	fmt.Fprintf(w, "at most\t%s ZEN a day, if it always trains at %s ZEN per PFLOP\n", zenText(a.Most),
		zenText(a.Price))
	if e := a.Electricity; e != nil {
		fmt.Fprintf(w, "electricity\t%.2f kWh and %.2f a day%s\n", e.KWh, e.Cost, balanceText(e))
	}
	if a.Standby > 0 {
		fmt.Fprintf(w, "stake\tof verifiers that stand by: %.2f %% a year, by the last epoch\n", float64(a.Standby)/1e4)
	}
	if a.Committed > 0 {
		fmt.Fprintf(w, "stake\twith a tier: %.2f %% a year, by the last epoch\n", float64(a.Committed)/1e4)
	}
	printFits(w, a.Report)
	printRaises(w, a.Raises)
	return w.Flush()
}

// printPlaces shows the free places of runs in progress.
func printPlaces(w io.Writer, places []estimate.Place) {
	for _, p := range places {
		fmt.Fprintf(w, "place\t%s: it would get %.1f %% of the units, and rounds would take %.3g blocks in place of %.3g; "+
			"%.0f rounds are left\n", p.Job, 100*p.Share, p.With, p.Now, p.Rounds)
		if p.Chance < 1 {
			fmt.Fprintf(w, "\tothers wait for it, too: it gets it with a chance of %.0f %%\n", 100*p.Chance)
		}
	}
}

// zenText writes an amount as accurately as an estimate is.
func zenText(uzen uint64) string {
	if uzen >= 1e6 {
		return terminal.Short(coin.Coin{}, uzen)
	}
	return terminal.Zen(uzen)
}

// printRaises shows the next class and the next tier: those above weigh more still.
func printRaises(w *tabwriter.Writer, steps []estimate.Step) {
	least := map[bool]estimate.Step{}
	for _, s := range steps {
		if known, ok := least[s.Tier]; !ok || s.WeighsPPM < known.WeighsPPM {
			least[s.Tier] = s
		}
	}
	for _, tier := range []bool{false, true} {
		s, ok := least[tier]
		if !ok {
			continue
		}
		what := map[bool]string{false: "class ", true: "tier "}[tier]
		fmt.Fprintf(w, "next\t%s%s weighs %.2f in place of %.2f, and needs %s\n", what, s.Name, float64(s.WeighsPPM)/1e6,
			float64(s.NowPPM)/1e6, strings.Join(s.Lacks, ", "))
	}
}

func balanceText(e *estimate.Balance) string {
	text := ""
	if e.BreakEven > 0 {
		text = fmt.Sprintf(", which the income pays for if a ZEN is worth %.4g", e.BreakEven)
	}
	if e.Net != nil {
		text += fmt.Sprintf("; %.2f a day are left", *e.Net)
	}
	return text
}

// printFits shows how many orders take the offer, and what each reason against the others is.
func printFits(w *tabwriter.Writer, r *estimate.Report) {
	takes, against := 0, map[market.Mismatch]int{}
	var reasons []estimate.Fit
	for _, f := range r.Orders {
		if f.Why == market.Fits {
			takes++
			continue
		}
		if against[f.Why]++; against[f.Why] == 1 {
			reasons = append(reasons, f)
		}
	}
	fmt.Fprintf(w, "orders\t%d of %d take the offer", takes, len(r.Orders))
	if r.More > 0 {
		fmt.Fprintf(w, "; %d more were not read", r.More)
	}
	fmt.Fprintln(w)
	for _, f := range reasons {
		fmt.Fprintf(w, "\t%d do not: %s\n", against[f.Why], f.Text)
		if f.Do != "" {
			fmt.Fprintf(w, "\tto do: %s\n", f.Do)
		}
	}
}
