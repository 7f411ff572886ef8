package bench

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/machine"
)

func auditCommand(c *terminal.Console) *cobra.Command {
	var threads, steps, repeat int
	name, quick := "", false
	var whole overheadFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Measure what the audit of a work unit costs",
		Long: `Measure a work unit as a worker computes it (inner steps, state roots, update) and as a verifier audits it
(the same, compared, sealed, and the seal opened), in turn and on as many threads. Of each the cheapest
of the repetitions counts. The bar is on processor time.

With --job, also train that job on an embedded network with audits and without, in turn, and compare the times of the
rounds after a warm-up, in which workers make themselves a history: what audits add to an honest run on one machine.

With -o json: {"preset","steps","threads","train_cpu_seconds","audit_cpu_seconds","train_seconds",
"audit_seconds","bars":[{"name","value","bar","holds"}],"overhead":{"rounds","drawn","with","without"}}.`,
		Example: `  starling bench audit
  starling bench audit --preset llama-10m --threads 1 --steps 8 -o json
  starling bench audit --job examples/quickstart.yaml --set training.max_steps=800 --set strategy.sync_steps=10`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := machine.PresetNamed(name)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			figure.Few(cmd, "steps", &steps, quick, 4)
			figure.Few(cmd, "repeat", &repeat, quick, 1)
			r, err := machine.Audit(cmd.Context(), p, threads, steps, repeat)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			overhead, err := whole.measure(cmd.Context(), c)
			if err != nil {
				return cause.Train(err)
			}
			if overhead != nil {
				r.Bars = append(r.Bars, benchmark.Below("run with audits / without", overhead.Ratio(), overheadBar))
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(struct {
					*machine.AuditReport
					Overhead *node.Overhead `json:"overhead,omitempty"`
				}{r, overhead})))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "PRESET\tSTEPS\tTHREADS\tTRAIN CPU S\tAUDIT CPU S\tTRAIN S\tAUDIT "+
				"S\n%s\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\n",
				r.Preset, r.Steps, r.Threads, r.TrainCPU, r.AuditCPU, r.TrainSeconds, r.AuditSeconds)
			for _, b := range r.Bars {
				fmt.Fprintf(w, "%s: %.3f, below %.2f: %v\n", b.Name, b.Value, b.Bar, b.Holds)
			}
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	f := cmd.Flags()
	presetFlag(cmd, &name)
	usage.ThreadsFlag(cmd, &threads)
	f.IntVar(&steps, "steps", 20, "inner steps of the unit")
	f.IntVar(&repeat, "repeat", 2, "repetitions of each side")
	figure.QuickFlag(cmd, &quick)
	f.StringVar(&whole.job, "job", "", "job file to train with audits and without; empty: none")
	f.StringArrayVar(&whole.set, "set", nil, "change a key of the job file: KEY=VALUE (repeatable)")
	f.IntVar(&whole.warmUp, "warm-up", 30, "rounds of the job that do not count")
	f.IntVar(&whole.runs, "runs", 2, "runs of the job of each kind")
	f.Float64Var(&whole.audited, "audited", 0.05, "part of the units of the job that is audited in the end")
	return cmd
}
