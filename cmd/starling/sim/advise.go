package sim

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/recommend"
	"github.com/starling-network/starling/node/simulate"
)

// advise ranks strategies for a job, and plays nothing.
func advise(c *terminal.Console, cmd *cobra.Command, path string, f options, opt simulate.Options) error {
	if len(f.sweep)+len(f.acts)+len(f.crashes)+len(f.cuts) > 0 || f.modelled || f.dir != "" || f.events != "" {
		return usage.Error(cmd, errors.New("--advise plays nothing: it goes with --set, --link, --gflops, --verifiers, "+
			"--block-time and --price"))
	}
	if !(f.price >= 0) {
		return usage.Error(cmd, fmt.Errorf("--price %v: it is a share, such as 0.02", f.price))
	}
	a, err := recommend.Recommend(cmd.Context(), recommend.Options{
		Network: opt, MostPrice: f.price,
		Load: func(overrides ...string) (*job.Job, error) {
			return jobfile.Load(cmd.Context(), c, path, slices.Concat(f.set, overrides))
		},
	})
	if err != nil {
		return cause.Train(err)
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, adviceAnswer(a))
	}
	return printAdvice(a)
}

func printAdvice(a *recommend.Ranking) error {
	fmt.Printf("%s parameters, %d workers\n\n", terminal.Number(float64(a.Parameters)), a.Workers)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STRATEGY\tSTEPS\tUPDATE\tSENT\tRECEIVED\tROUND\tINNER STEPS\tTOKENS/S\tTIME\tSTATE\tDISK\tZEN AT "+
		"MOST\tLOSS\tWAITS")
	var sources []string
	for _, x := range a.Candidates {
		if x.RoundSeconds == 0 {
			continue
		}
		loss := "unknown"
		if x.Price != nil {
			i := slices.Index(sources, x.Price.Source)
			if i < 0 {
				i, sources = len(sources), append(sources, x.Price.Source)
			}
			loss = fmt.Sprintf("%+.1f %% [%d]", 100*x.Price.Loss, i+1)
		}
		name := x.Name
		if x.Own {
			name += " *"
		}
		if x.Refused != "" {
			name, loss = "("+name+")", ""
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%.1f %%\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, x.SyncSteps,
			terminal.Bytes(uint64(x.UpdateBytes)), terminal.Bytes(uint64(x.SentBytes)),
			terminal.Bytes(uint64(x.ReceivedBytes)), terminal.Seconds(x.RoundSeconds), 100*x.Utilisation,
			terminal.Number(x.TokensPerSec),
			terminal.Seconds(x.Seconds),
			terminal.Bytes(uint64(x.StateBytes)), terminal.Bytes(uint64(x.DiskBytes)), terminal.Zen(x.MostUzen), loss, x.Waits)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println("\n*   what the job does as it is")
	for i, s := range sources {
		fmt.Printf("[%d] %s\n", i+1, s)
	}
	for _, x := range a.Candidates {
		if x.Refused != "" {
			fmt.Printf("not %s in rounds of %d steps: %s\n", x.Name, x.SyncSteps, x.Refused)
		}
	}
	best := a.Candidates[0]
	if best.Refused != "" {
		return nil
	}
	switch {
	case best.Price == nil:
		fmt.Println("No loss of these was measured in so few rounds of this many steps. The first is the " +
			"fastest; nothing is advised.")
	case best.Price.Loss > a.MostPrice:
		fmt.Printf("No measured strategy is within %.1f %% of the loss of data-parallel training in so few rounds. The "+
			"first is the closest that is measured; nothing is advised.\n", 100*a.MostPrice)
		fmt.Println("More rounds (training.max_steps) cost less.")
	default:
		fmt.Printf("the first trains the most tokens a second (3 %% are no difference) of those known to cost at most "+
			"%.1f %% of loss\n", 100*a.MostPrice)
	}
	if a.Line != "" {
		fmt.Println("\n" + a.Line)
	}
	return nil
}

// adviceAnswer is about candidates, which xargs starling train takes as settings.
func adviceAnswer(a *recommend.Ranking) terminal.Answer {
	return terminal.List(a, a.Candidates,
		func(c recommend.Candidate) string { return "--set '" + strings.Join(c.Set, "' --set '") + "'" })
}
