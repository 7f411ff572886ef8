package job

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/rest"
	"github.com/starling-network/starling/cmd/starling/receipt"
	"github.com/starling-network/starling/cmd/starling/source"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
)

func metricsCommand(c *terminal.Console) *cobra.Command {
	var names []string
	var points int
	var csv bool
	var p source.Place
	cmd := &cobra.Command{
		Use:   "metrics JOB",
		Short: "Show the series of a job: losses, rates, throughput, traffic, cost",
		Long: `Show the series of a job over its inner steps: of each the first and the latest value, the least and the
largest, and a sketch of its course. --csv prints every record as comma-separated values. starling job export-metrics
writes the forms of other tools.

` + source.JobNames + `

With -o json: {"steps","axis":{"step","tokens","seconds","uzen"},"series":[{"name","label","unit","of","count",` +
			`"step":[],
"value":[]}]}, thinned to --points.`,
		Example: `  starling job metrics quickstart
  starling job metrics quickstart --series loss,eval_loss --points 100 -o json
  starling job metrics quickstart --csv > metrics.csv`,
		Args: usage.Exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if points < 3 || points > 20_000 {
				return usage.Error(cmd, fmt.Errorf("--points is 3 to 20000"))
			}
			a, j, err := p.Find(cmd, args[0])
			if err != nil {
				return err
			}
			defer a.Close()
			if csv {
				return source.Explain(a.MetricsCSV(cmd.Context(), j.ID, os.Stdout))
			}
			m, err := a.Metrics(cmd.Context(), j.ID, names, points)
			if err != nil {
				return source.Explain(err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.List(m, m.Series, func(s api.Series) string { return s.Name }))
			}
			return printSeries(m, c.Form)
		},
	}
	p.Flags(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&names, "series", nil, "names of series, separated by commas (default: all)")
	f.IntVar(&points, "points", 1000, "most points of a series")
	f.BoolVar(&csv, "csv", false, "print every record as comma-separated values")
	return cmd
}

func printSeries(m api.Metrics, f terminal.Form) error {
	w := terminal.NewColumns(os.Stdout, f, "SERIES", "UNIT", "COUNT", "FIRST", "LATEST", "LEAST", "LARGEST", "COURSE",
		"+LABEL")
	for _, s := range m.Series {
		least, largest := math.Inf(1), math.Inf(-1)
		for _, v := range s.Value {
			least, largest = min(least, v), max(largest, v)
		}
		figure := func(x float64) string { return fmt.Sprintf("%.4g", x) }
		w.Row(s.Name, s.Unit, s.Count, figure(s.Value[0]), figure(s.Value[len(s.Value)-1]), figure(least), figure(largest),
			terminal.Sketch(s.Value, 24), s.Label)
	}
	return w.Flush()
}

func eventsCommand(c *terminal.Console) *cobra.Command {
	return source.JobCommand(c, "events", "List what happened to a job",
		`List what happened to a job, in order of rounds: the
checkpoints that a quorum signed, challenges and verdicts, what was slashed, paid as a bounty or given back, and where
it stands. starling job watch shows it while it runs.

With -o json: {"events":[{"round","height","kind","who","text"}]}.`, `  starling job events quickstart
  starling job events job-7f3a --network http://127.0.0.1:26601 -o jsonl`,
		func(cmd *cobra.Command, a *source.Client, j api.Job) ([]rest.Event, error) {
			return a.Events(cmd.Context(), j.ID)
		},
		func(all []rest.Event) terminal.Answer {
			return terminal.Items("events", all, func(e rest.Event) string { return strconv.Itoa(e.Round) })
		},
		func(all []rest.Event, f terminal.Form) error {
			w := terminal.NewColumns(os.Stdout, f, "ROUND", "WHAT", "WHO", "TEXT", "+HEIGHT")
			for _, e := range all {
				w.Row(e.Round, e.Kind, e.Who, e.Text, e.Height)
			}
			return w.Flush()
		})
}

func receiptsCommand(c *terminal.Console) *cobra.Command {
	var who, kind string
	var zero bool
	cmd := source.JobCommand(c, "receipts", "List why each was paid, was not, or was slashed",
		`List the receipts of a job, each
with its amount and its reason. starling job explain says all that can be said about one.

With -o json: {"receipts":[{"seq","height","round","unit","who","role","kind","flops","price","amount","fee",`+
			`"reason","fix","coin",
"explanation","why","arithmetic":[TEXT],"dispute"}],"total"}.`, `  starling job receipts quickstart
  starling job receipts quickstart --zero
  starling job receipts job-7f3a --who starling1qx --network http://127.0.0.1:26601 -o jsonl`,
		func(cmd *cobra.Command, a *source.Client, j api.Job) (api.Receipts, error) {
			r, err := a.Receipts(cmd.Context(), j.ID, who, kind, zero)
			return api.Receipts{Receipts: r, Total: len(r)}, err
		},
		func(r api.Receipts) terminal.Answer {
			return terminal.List(r, r.Receipts, func(x api.Receipt) string { return strconv.FormatUint(x.Seq, 10) })
		},
		func(r api.Receipts, f terminal.Form) error {
			w := terminal.NewColumns(os.Stdout, f, "SEQ", "ROUND", "UNIT", "KIND", "WHO", "AMOUNT", "WHY", "+FEE", "+FLOPS",
				"+A PFLOP", "+HEIGHT", "+TO DO")
			for _, x := range r.Receipts {
				w.Row(x.Seq, x.Round, x.Unit, x.Kind, x.Who, amountIn(x.Coin, x.Amount), x.Why,
					amountIn(x.Coin, x.Fee), x.Flops, amountIn(x.Coin, x.Price), x.Height, x.Fix)
			}
			return w.Flush()
		})
	f := cmd.Flags()
	f.StringVar(&who, "who", "", "only those about an account, by the beginning of its address")
	f.StringVar(&kind, "kind", "", "only those of a kind: work, audit, slash, bounty, fee, deposit or refund")
	f.BoolVar(&zero, "zero", false, "only those of nothing")
	return cmd
}

// amountIn is an amount in the coin of an answer, for a table.
func amountIn(of *api.Coin, amount uint64) string { return terminal.Amount(api.CoinOf(of), amount) }

func disputesCommand(c *terminal.Console) *cobra.Command {
	return source.JobCommand(c, "disputes", "List the disputes of a job, move by move", `List the disputes of a job: who
challenged whom about which unit, what the parties said move by move, what the referee recomputed, and the verdict.

With -o json: {"disputes":[{"worker","challenger","round","unit","verdict","reason","moves","hash_bytes","leaf",`+
		`"leaf_bytes",
"leaf_ms","height","log":[{"height","by","what"}]}]}.`, `  starling job disputes quickstart
  starling job disputes quickstart -o json`,
		func(cmd *cobra.Command, a *source.Client, j api.Job) (api.Disputes, error) {
			d, err := a.Disputes(cmd.Context(), j.ID)
			return api.Disputes{Disputes: d}, err
		},
		func(d api.Disputes) terminal.Answer {
			return terminal.List(d, d.Disputes, func(x api.Dispute) string { return x.Worker })
		},
		func(d api.Disputes, f terminal.Form) error {
			w := terminal.NewColumns(os.Stdout, f, "ROUND", "UNIT", "HEIGHT", "BY", "WHAT")
			for _, x := range d.Disputes {
				w.Row(x.Round, x.Unit, x.Height, "verdict",
					fmt.Sprintf("%s, worker %s, verifier %s", receipt.Verdict(x.Verdict, x.Reason), x.Worker, x.Challenger))
				for _, m := range x.Log {
					w.Row(x.Round, x.Unit, m.Height, m.By, m.What)
				}
			}
			return w.Flush()
		})
}

func lineageCommand(c *terminal.Console) *cobra.Command {
	return source.JobCommand(c, "lineage", "List the attested checkpoints of a job, with their signers",
		`List the checkpoints
of a job that a quorum attested: the root of each state, where its bytes are, and its signers. starling job verify
computes them again.

With -o json: {"checkpoints":[{"round","state_root","checkpoint","updates":[CID],"signers":[{"id","public_key",
"signature"}]}],"total"}.`, `  starling job lineage quickstart
  starling job lineage job-7f3a --network http://127.0.0.1:26601 -o json`,
		func(cmd *cobra.Command, a *source.Client, j api.Job) (api.Lineage, error) {
			l, err := a.Lineage(cmd.Context(), j.ID)
			return api.Lineage{Checkpoints: l, Total: len(l)}, err
		},
		func(l api.Lineage) terminal.Answer {
			return terminal.List(l, l.Checkpoints, func(p api.Checkpoint) string { return p.Checkpoint })
		},
		func(l api.Lineage, f terminal.Form) error {
			w := terminal.NewColumns(os.Stdout, f, "ROUND", "STATE ROOT", "CHECKPOINT", "UPDATES", "SIGNED BY", "+SIGNERS")
			for _, p := range l.Checkpoints {
				signers := make([]string, len(p.Signers))
				for i, s := range p.Signers {
					signers[i] = s.ID
				}
				w.Row(p.Round, p.StateRoot, p.Checkpoint, len(p.Updates), len(signers), strings.Join(signers, " "))
			}
			return w.Flush()
		})
}

func workersCommand(c *terminal.Console) *cobra.Command {
	return source.JobCommand(c, "workers", "List the members of a job, with their work and pay",
		`List who took part in a job, as
its receipts and signatures tell: what each did, was paid and lost.

With -o json: {"members":[{"id","role","units","paid_receipts","zero_receipts","uzen","slashed_uzen","signed","audits",
"zeros":[TEXT],"coin"}],"rounds","audited":[{"verifier","worker","audits","failed"}]}.`,
		`  starling job workers quickstart
  starling job workers quickstart -o json`,
		func(cmd *cobra.Command, a *source.Client, j api.Job) (api.Members, error) {
			return a.Members(cmd.Context(), j.ID)
		},
		func(m api.Members) terminal.Answer {
			return terminal.List(m, m.Members, func(x api.Member) string { return x.ID })
		},
		func(m api.Members, f terminal.Form) error {
			w := terminal.NewColumns(os.Stdout, f, "MEMBER", "ROLE", "UNITS", "AUDITS", "SIGNED", "RECEIVED", "SLASHED",
				"ZEROS", "+WHY ZERO")
			for _, x := range m.Members {
				w.Row(x.ID, x.Role, x.Units, x.Audits.Drawn, terminal.Part(x.Signed, m.Rounds), amountIn(x.Coin, x.Uzen),
					terminal.Zen(x.SlashedUzen), x.Zero, strings.Join(x.Zeros, "; "))
			}
			return w.Flush()
		})
}

func costCommand(c *terminal.Console) *cobra.Command {
	return source.JobCommand(c, "cost", "Show what a job has cost",
		`Show what became of the budget of a job: budget = paid + fee
+ refunded + remaining, in the coin of the job. Slashed ZEN
came from stakes.

With -o json: {"budget_uzen","paid_uzen","fee_uzen","refunded_uzen","remaining_uzen","slashed_uzen","job_id"} and
"coin" for a job in another coin.`,
		`  starling job cost quickstart
  starling job cost job-7f3a --network http://127.0.0.1:26601 -o json`,
		func(cmd *cobra.Command, a *source.Client, j api.Job) (cost, error) {
			x, err := a.Cost(cmd.Context(), j.ID)
			return cost{j.ID, x}, err
		},
		func(x cost) terminal.Answer { return terminal.One(x, x.Job) },
		func(x cost, f terminal.Form) error {
			w := terminal.NewColumns(os.Stdout, f, "BUDGET", "PAID", "FEE", "REFUNDED", "REMAINING", "SLASHED")
			w.Row(amountIn(x.Coin, x.BudgetUzen), amountIn(x.Coin, x.PaidUzen), amountIn(x.Coin, x.FeeUzen),
				amountIn(x.Coin, x.RefundedUzen), amountIn(x.Coin, x.RemainingUzen), terminal.Zen(x.SlashedUzen))
			return w.Flush()
		})
}

// cost is what a job has cost, and which.
type cost struct {
	Job string `json:"job_id"`
	api.Cost
}
