// Package pipeline is starling bench pipeline: it shows the figures of node/benchmark/pipeline and onestage, and
// measures nothing.
package pipeline

import (
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/epochs"
	"github.com/starling-network/starling/node/benchmark/onestage"
	"github.com/starling-network/starling/node/benchmark/pipeline"
	"github.com/starling-network/starling/node/benchmark/skipping"
)

// Report is the outcome for programs.
type Report struct {
	*pipeline.Report
	Skipped []skipping.Setting `json:"skipped"`
	Rekeyed epochs.Report      `json:"rekeyed"`
}

// Command is starling bench pipeline.
func Command(c *terminal.Console) *cobra.Command {
	keys := 1000 // that change the weights of a model, one after the other
	o, quick, processes := pipeline.Options{Steps: 50, Sequences: 32, Repeats: 2, Boundaries: 400}, false, false
	cmd := &cobra.Command{
		Use:   "pipeline",
		Short: "Measure models that are cut into stages",
		Long: `Cut the training step of small models into 2, 4 and 8 stages, each of which holds a part of the layers, and
compute a unit with all of them in this process: each stage sends activations and gradients to the others, hashes and
signs them, and commits to a state root after every step. Compare the weights with those of the whole model. Measure
the processor time of hashing and signing, the memory of the stages of a model four times as large as the largest of
them, and the loss of a model whose stages exchange codes of 4 bits, or a part of the columns. Train a model whose
stages do not wait for each other between steps, compare its loss with that of stages that do, and compute the exact
lengths of both schedules over links of 100 ms, for several times that a stage takes for a microbatch. Train a model
of whose stages each microbatch leaves out some, and compare its loss and the exact length of a step in the same way,
and its perplexity without a stage with that of a model whose training left out none.
Deal the units of three stages to nine workers of unequal speed, in turn and by speed as a run does, and compute the
exact lengths of such rounds, as shares of the throughput of workers that never wait. Then attack: one stage after the
other computes something else, forward, backward or in the update, denies what it sent or received, or stops in the
middle of a step, and begins it again. No network takes part.

With --processes, do nothing of that: start a network of processes on this machine, a validator, six workers and a
verifier, and train a model of six stages whose weights, gradients and moments have four times the bytes that
--memory allows each worker. Measure the most memory of each worker, and compare the root of the model with that of
the same job in one process that is not cut. It takes some minutes, and 50 GB of disk (15 GB with --quick).

With -o json: {"cuts":[{"model","stages","microbatches","steps","differ","bytes","idle","in_flight",
"memory_largest"}],"cost":{"stages","plain_ms","signed_ms","percent"},"six":{...},"boundaries":[{"scheme","forward",
"back","steps","loss","gap","differ","excess"}],"paces":[{"ms","busy"}],"late":[{"delay","corrected","steps","loss",
"gap","differ","in_flight","state","faster":[TIMES]}],"routing":[{"speeds","replicas","latency_ms","late","overrated",
"unrated","turn","speed","least","balance","learnt"}],"skipped":[{"stages","microbatches","share","layers",
"in_flight","memory","faster":[TIMES],"steps","loss","gap","perplexity":[WHOLE,WITHOUT],"plain":[WHOLE,WITHOUT]}],
"attacks":{"liars","convicted","denials","shown","withheld","named","wrong","restarts","resumed"},"rekeyed":{"keys",
"difference","perplexity","keyed","stitched","times","one_stage"},"bars":[{"name","value","bar","holds"}]}.

With --processes and -o json: {"parameters","state_bytes","allowed_bytes","stage_bytes","whole_bytes",
"idle_bytes","peak_bytes":[BYTES],"state_root","seconds","bars"}.`,
		Example: `  starling bench pipeline --quick
  starling bench pipeline --processes --quick
  starling bench pipeline --steps 50 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if processes {
				return oneStage(cmd, c, quick)
			}
			figure.Few(cmd, "steps", &o.Steps, quick, 4)
			if quick {
				o.Sequences, o.Repeats, o.Boundaries, keys = 8, 1, 20, 100
			}
			o.Progress = c.Say
			r, err := pipeline.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			o.Progress("stages that microbatches leave out")
			skipped, err := skipping.Measure(cmd.Context(), o.Boundaries, o.Threads)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			o.Progress("weights that are changed by keys")
			e, err := epochs.Measure(cmd.Context(), keys, epochs.Steps, o.Threads)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			r.Bars = slices.Concat(r.Bars, skipping.Bars(skipped), e.Bars())
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(Report{r, skipped, e})))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "MODEL\tSTAGES\tMICROBATCHES\tSTEPS\tDIFFER\tBYTES A STEP\tIDLE\tMEMORY")
			for _, x := range append(r.Cuts, r.Six) {
				fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%.3f\t%.3f\n", x.Model, x.Stages, x.Microbatches, x.Steps, x.Differ,
					x.Bytes, x.Idle, x.LargestShare)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			fmt.Printf("\na step in %d stages takes %.1f ms of processor time, %.1f ms with hashes and signatures\n\n",
				r.Cost.Stages, r.Cost.Plain, r.Cost.Signed)
			fmt.Fprintln(w, "BETWEEN STAGES\tBYTES FORWARD\tBYTES BACK\tSTEPS\tLOSS\tGAP")
			for _, b := range r.Boundaries {
				fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%d\t%.4f\t%.4f\n", b.Scheme, b.Forward, b.Back, b.Steps, b.Loss, b.Gap)
			}
			printLate(w, r)
			printSkipped(w, skipped)
			printRouting(w, r)
			fmt.Fprintf(w, "\nafter %d keys logits differ by %.2g; perplexity %.2f, after them %.2f, of stages of two keys "+
				"%.0f\n", e.Keys, e.Difference, e.Perplexity, e.Keyed, e.Stitched)
			fmt.Fprintln(w)
			figure.PrintBars(w, r.Bars)
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	figure.QuickFlag(cmd, &quick)
	cmd.Flags().IntVar(&o.Steps, "steps", o.Steps, "steps of a unit, at most 64")
	usage.ThreadsFlag(cmd, &o.Threads)
	cmd.Flags().BoolVar(&processes, "processes", false, "measure workers that hold one stage each, and nothing else")
	return cmd
}

// printLate shows the figures of stages that do not wait for each other.
func printLate(w io.Writer, r *pipeline.Report) {
	fmt.Fprint(w, "\nLATE BY\tCORRECTED\tLOSS\tGAP\tIN FLIGHT\tSTATE")
	for _, p := range r.Paces {
		fmt.Fprintf(w, "\tAT %.0f ms", p.Milliseconds)
	}
	fmt.Fprintln(w)
	for _, l := range r.Late {
		fmt.Fprintf(w, "%d\t%t\t%.4f\t%.4f\t%d\t%.3f", l.Delay, l.Corrected, l.Loss, l.Gap, l.InFlight, l.State)
		for _, x := range l.Faster {
			fmt.Fprintf(w, "\t%.2f", x)
		}
		fmt.Fprintln(w)
	}
}

// printSkipped shows the figures of stages that microbatches leave out.
func printSkipped(w io.Writer, list []skipping.Setting) {
	fmt.Fprint(w, "\nSTAGES\tMICROBATCHES\tLEFT OUT\tOF OPERATIONS\tLOSS\tGAP\tIN FLIGHT\tMEMORY")
	for _, ms := range skipping.Paces {
		fmt.Fprintf(w, "\tAT %.0f ms", ms)
	}
	fmt.Fprintln(w, "\tNO LATENCY")
	for _, s := range list {
		loss, gap := "-", "-"
		if s.Steps > 0 {
			loss, gap = fmt.Sprintf("%.4f", s.Loss), fmt.Sprintf("%.4f", s.Gap)
		}
		fmt.Fprintf(w, "%d\t%d\t%.2f\t%.3f\t%s\t%s\t%d\t%.3f", s.Stages, s.Microbatches, s.Share, s.Layers, loss, gap,
			s.InFlight, s.Memory)
		for _, x := range s.Faster {
			fmt.Fprintf(w, "\t%.2f", x)
		}
		fmt.Fprintln(w)
	}
}

// printRouting shows the shares of the ideal throughput of workers of unequal speed.
func printRouting(w io.Writer, r *pipeline.Report) {
	fmt.Fprintln(w, "\nSPEEDS\tREPLICAS\tLATENCY\tLATE BY\tRATES\tIN TURN\tBY SPEED\tLEAST\tBALANCE\tLEARNT")
	for _, x := range r.Routing {
		rates := "right"
		if x.Overrated > 0 {
			rates = fmt.Sprintf("one %.0f times its speed", x.Overrated)
		}
		if x.Unrated {
			rates = "none"
		}
		fmt.Fprintf(w, "%v\t%d\t%.0f ms\t%d\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\n", x.Speeds, x.Replicas, x.Latency,
			x.Late, rates, x.Turn, x.Speed, x.Least, x.Balance, x.Learnt)
	}
}

// oneStage shows the figures of node/benchmark/onestage.
func oneStage(cmd *cobra.Command, c *terminal.Console, quick bool) error {
	r, err := onestage.Measure(cmd.Context(), onestage.Options{Quick: quick, Progress: c.Say})
	if err != nil {
		return cause.Measurement(cmd, err)
	}
	if c.Form.Machine() {
		return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
	}
	size := func(n int64) string { return terminal.Bytes(uint64(n)) }
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "parameters\t%d\n", r.Parameters)
	fmt.Fprintf(w, "weights, gradients and moments\t%s\n", size(r.State))
	fmt.Fprintf(w, "--memory of a worker\t%s\n", size(r.Allowed))
	fmt.Fprintf(w, "plan of a worker\t%s, and %s for the model that is not cut\n", size(r.Stage), size(r.Whole))
	fmt.Fprintf(w, "a worker without a job\t%s\n", size(r.Idle))
	for i, p := range r.Peaks {
		fmt.Fprintf(w, "worker %d\t%s\n", i, size(p))
	}
	fmt.Fprintf(w, "root\t%s\n\n", r.Root)
	figure.PrintBars(w, r.Bars)
	return figure.Judge(r.Bars, w.Flush())
}
