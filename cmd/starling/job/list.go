package job

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/receipt"
	"github.com/starling-network/starling/cmd/starling/source"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/protocol/coin"
)

// jobStates are the states of jobs.
var jobStates = []string{"queued", "running", "stopped", "done", "halted", "failed"}

func listCommand(c *terminal.Console) *cobra.Command {
	var p source.Place
	var state, kind string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List jobs: of a folder, a server or a network",
		Long: `List the jobs in a folder of runs, of a server, or of a network, the latest first; of a network those that wait
and run before those that are over.

With -o json: {"jobs":[JOB]}, each as starling job get prints it, without facts and parties.`,
		Example: `  starling job list
  starling job list --state running -o name
  starling job list --api http://127.0.0.1:7300 --limit 10
  starling job list --network http://127.0.0.1:26601`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usage.Error(cmd, errors.New("--limit must not be negative"))
			}
			if state != "" && !slices.Contains(jobStates, state) {
				return usage.Error(cmd, fmt.Errorf("--state %s: states are %s", state, strings.Join(jobStates, ", ")))
			}
			a, err := p.Open(cmd, "")
			if err != nil {
				return err
			}
			defer a.Close()
			jobs, err := a.Jobs(cmd.Context(), state, kind)
			if err != nil {
				return source.Explain(err)
			}
			if limit > 0 {
				jobs = jobs[:min(limit, len(jobs))]
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.List(api.JobList{Jobs: jobs}, jobs, func(j api.Job) string { return j.ID }))
			}
			return printJobs(jobs, c.Form)
		},
	}
	p.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&state, "state", "", "only those in a state: "+strings.Join(jobStates, ", "))
	f.StringVar(&kind, "kind", "", "only those of a kind: run, simulation or network")
	f.IntVar(&limit, "limit", 0, "only so many, the first; 0: all")
	return cmd
}

func printJobs(jobs []api.Job, f terminal.Form) error {
	w := terminal.NewColumns(os.Stdout, f, "ID", "STATE", "ROUND", "LOSS", "EVAL LOSS", "WORKERS", "PAID", "STARTED",
		"+KIND", "+STEP", "+TOKENS", "+BUDGET", "+DISPUTES", "+JOB", "+STATE ROOT", "+WHY")
	for _, j := range jobs {
		why := ""
		if j.Reason != nil {
			why = j.Reason.Text
		}
		w.Row(j.ID, j.State, terminal.Part(j.Round, j.Rounds), terminal.Figure(j.Loss), terminal.Figure(j.EvalLoss),
			j.Workers,
			amountIn(j.Coin, j.PaidUzen), terminal.When(j.Started),
			j.Kind, steps(j), terminal.Whole(j.Tokens), amountIn(j.Coin, j.BudgetUzen), j.Disputes, j.Job, j.StateRoot, why)
	}
	return w.Flush()
}

func getCommand(c *terminal.Console) *cobra.Command {
	return source.JobCommand(c, "get", "Show a job and its totals so far",
		`Show where a job stands, what it trained, what it
cost, and why it is as it is.

With -o json: {"id","job","name","kind","state","reason":{"code","text","next"},"phase","step","steps","round","rounds",
"workers","tokens","tokens_per_second","loss","eval_loss","first_eval_loss","bits_per_byte","paid_uzen","fee_uzen",
"refunded_uzen","budget_uzen","slashed_uzen","audits":{"drawn","passed","failed",
"moot","missed"},"disputes","bytes_up","bytes_down","seconds",
"seconds_left","state_root","started","updated","facts":[{"name","value"}],
"pushes":[{"to","from","state","files","bytes","sent_bytes","address","reason":{"code","text","next"},"updated"}],
...}.`, `  starling job get quickstart
  starling job get out/quickstart -o json
  starling job get job-7f3a --network http://127.0.0.1:26601`,
		func(_ *cobra.Command, _ *source.Client, j api.Job) (api.Job, error) { return j, nil },
		func(j api.Job) terminal.Answer { return terminal.One(j, j.ID) },
		func(j api.Job, _ terminal.Form) error { return printJob(j) })
}

func printJob(j api.Job) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	row := func(what, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", what, fmt.Sprintf(format, args...)) }
	row("job", "%s  %s", j.ID, j.Job)
	row("state", "%s", strings.TrimSpace(j.State+" "+j.Phase))
	if r := j.Reason; r != nil {
		row("why", "%s", r.Text)
		if r.Next != "" {
			row("next", "%s", r.Next)
		}
	}
	for _, q := range quantities {
		if text := q.of(j); text != "" {
			row(q.name, "%s", text)
		}
	}
	for _, f := range j.Facts {
		row(strings.ToLower(f.Name), "%s", f.Value)
	}
	for _, p := range j.Pushes {
		row("copy", "%s", receipt.Copy(p))
	}
	return w.Flush()
}

// quantities are what jobs are shown and compared by.
var quantities = []struct {
	name string
	of   func(j api.Job) string // "": not known
}{
	{"round", func(j api.Job) string { return terminal.Part(j.Round, j.Rounds) }},
	{"step", steps},
	{"tokens", func(j api.Job) string { return terminal.Positive(float64(j.Tokens), terminal.Number) }},
	{"loss of the last round", func(j api.Job) string { return terminal.Figure(j.Loss) }},
	{"eval loss", func(j api.Job) string { return terminal.Figure(j.EvalLoss) }},
	{"eval loss, bits a byte", func(j api.Job) string { return terminal.Figure(j.BitsPerByte) }},
	{"first eval loss", func(j api.Job) string { return terminal.Figure(j.FirstEvalLoss) }},
	{"throughput", func(j api.Job) string {
		return terminal.Positive(j.TokensPerSecond, func(x float64) string { return terminal.Number(x) + " tokens/s" })
	}},
	{"time", func(j api.Job) string { return terminal.Positive(j.Seconds, terminal.Seconds) }},
	{"time left", func(j api.Job) string { return terminal.Positive(j.SecondsLeft, terminal.Seconds) }},
	{"workers", func(j api.Job) string { return terminal.Positive(float64(j.Workers), terminal.Number) }},
	{"paid", func(j api.Job) string {
		c := api.CoinOf(j.Coin)
		return fmt.Sprintf("%s and %s fee of a budget of %s", c.Text(j.PaidUzen), c.Amount(j.FeeUzen), c.Amount(j.BudgetUzen))
	}},
	{"refunded", func(j api.Job) string {
		return terminal.Optional(api.CoinOf(j.Coin), j.RefundedUzen)
	}},
	{"slashed", func(j api.Job) string { return terminal.Optional(coin.Coin{}, j.SlashedUzen) }},
	{"audits", func(j api.Job) string {
		return j.Audits.String()
	}},
	{"disputes", func(j api.Job) string { return fmt.Sprint(j.Disputes) }},
	{"sent", func(j api.Job) string {
		return terminal.Positive(float64(j.BytesUp), func(float64) string { return terminal.Bytes(j.BytesUp) })
	}},
	{"received", func(j api.Job) string {
		return terminal.Positive(float64(j.BytesDown), func(float64) string { return terminal.Bytes(j.BytesDown) })
	}},
	{"state root", func(j api.Job) string { return j.StateRoot }},
	{"started", func(j api.Job) string { return terminal.When(j.Started) }},
}

func steps(j api.Job) string {
	if j.Step+j.Steps == 0 {
		return ""
	}
	return terminal.Part(j.Step, j.Steps)
}

func compareCommand(c *terminal.Console) *cobra.Command {
	var p source.Place
	cmd := &cobra.Command{
		Use:   "compare JOB JOB...",
		Short: "Put jobs side by side",
		Long: `Put jobs side by side: their settings, progress, losses, cost and traffic. A line that begins with *
differs. -o wide shows all lines, the others those that differ.

` + source.JobNames + `

With -o json: {"jobs":[JOB]}, each as starling job get prints it.`,
		Example: `  starling job compare quickstart other
  starling job compare out/sweep/000 out/sweep/001 -o wide
  starling job compare quickstart other -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage.Error(cmd, errors.New("two jobs are needed, or more"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			jobs := make([]api.Job, len(args))
			for i, name := range args {
				a, j, err := p.Find(cmd, name)
				if err != nil {
					return err
				}
				a.Close()
				jobs[i] = j
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.List(api.JobList{Jobs: jobs}, jobs, func(j api.Job) string { return j.ID }))
			}
			return printComparison(jobs, c.Form)
		},
	}
	p.Flags(cmd)
	return cmd
}

func printComparison(jobs []api.Job, f terminal.Form) error {
	titles := []string{" ", "QUANTITY"}
	for _, j := range jobs {
		titles = append(titles, j.ID)
	}
	w := terminal.NewColumns(os.Stdout, f, titles...)
	line := func(name string, values []string) {
		differs := slices.ContainsFunc(values, func(v string) bool { return v != values[0] })
		if !differs && f != terminal.Wide {
			return
		}
		mark := " "
		if differs {
			mark = "*"
		}
		cells := []any{mark, name}
		for _, v := range values {
			cells = append(cells, v)
		}
		w.Row(cells...)
	}
	of := func(value func(j api.Job) string) []string {
		values := make([]string, len(jobs))
		for i, j := range jobs {
			values[i] = value(j)
		}
		return values
	}
	line("state", of(func(j api.Job) string { return j.State }))
	for _, q := range quantities {
		line(q.name, of(q.of))
	}
	var names []string
	for _, j := range jobs {
		for _, fact := range j.Facts {
			if !slices.Contains(names, fact.Name) {
				names = append(names, fact.Name)
			}
		}
	}
	for _, name := range names {
		line(strings.ToLower(name), of(func(j api.Job) string {
			i := slices.IndexFunc(j.Facts, func(fact api.Fact) bool { return fact.Name == name })
			if i < 0 {
				return ""
			}
			return j.Facts[i].Value
		}))
	}
	return w.Flush()
}
