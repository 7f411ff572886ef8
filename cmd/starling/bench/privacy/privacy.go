// Package privacy is starling bench privacy: it shows the figures of node/benchmark/privacy, and measures nothing.
package privacy

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/privacy"
)

// Command is starling bench privacy.
func Command(c *terminal.Console) *cobra.Command {
	var quick bool
	cmd := &cobra.Command{
		Use:   "privacy",
		Short: "Measure secure sums, noise and the accountant of privacy, and attack them",
		Long: `Add the vectors of 5, 20 and 100 clients, which are all in this process, under masks: with as many of them
dropping out in each phase as the threshold allows, and the largest with a million entries. Test the noise against its
distribution, and compare the accountant with published figures. starling job federated trains with these parts; a run
of starling train is not private.

Train ten owners with different shares of digits with control variates and without, and ten owners of different
languages with adapters of one base model: by factors that take turns, by one factor, by the mean of each factor, and by
products. The reference is one owner of all data.

Then attack: search for the images of owners in their updates, in updates with noise, and in the secure sum of ten; tell
the examples that a model was trained on from others; and look for the data in all bytes that the owners of a job send.
Ten owners with different shares of digits train with noise for each example, at epsilon 8, 3 and 1. All images are
drawn. An attack that finds nothing proves nothing: a search for all ten images of a sum together is shown, too.

Play committees of twenty members that train on digits, half of them honestly: others name the digits wrongly, hand in
noise or copies. By the rules of the network, the pay of a round follows the median of the reports of evaluators, of
whom a third lies together.

Add the same updates in the clear, under masks and as ciphertexts, with as many owners leaving as the threshold allows:
what each way costs an owner and the coordinator, and what it protects. Ask a perceptron about digits in the clear, and
divided among three parties over real connections (starling model divide).

Last, measure a training job with encrypt_data: which part of the processor time of a round is that of encryption, of
the release of keys over real connections, and of decryption, and whether bytes that others may see have windows of the
data.

With -o json: {"sums":[{"clients","entries","dropouts","phase","exact","error","processor"}],"vectors":[{"rate","noise",
"steps","delta","classic","epsilon","deviation"}],"inversion":[{"from","searches","mean_psnr","best_psnr","picked",
"away"}],"membership":[{"epsilon","noise","area","seen","accuracy"}],"curve":[{"dirichlet","wanted","noise","epsilon",
"delta","accuracy"}],"methods":[{"dirichlet","method","accuracy"}],"adapters":[{"way","loss","above","bytes"}],
"traffic":{"owners","rounds","bytes","windows","found"},"encrypted":{"shards","read","training","sealing","opening",
"part","bytes","windows","found"},"committees":[{"dirichlet","rounds","earned":[{"kind","members","rounds","paid"}],
"moved":{"captured","scores","drawn"},"before","after"}],"prices":[{"way","owners","summed","weights","sent","received",
"owner_seconds","coordinator_seconds","exact","protects","leaves"}],"answers":[{"way","images","weights","sent",
"received","seconds","elapsed_seconds","away","bound","protects","leaves"}],"bars":[{"name","value","bar","holds"}]}.`,
		Example: `  starling bench privacy
  starling bench privacy --quick -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := privacy.Whole
			if quick {
				o = privacy.Quick
			}
			o.Progress = c.Say
			r, err := privacy.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			return show(r)
		},
	}
	figure.QuickFlag(cmd, &quick)
	return cmd
}

func show(r *privacy.Report) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLIENTS\tENTRIES\tDROPOUTS\tDROP OUT\tEXACT\tERROR\tPROCESSOR")
	for _, s := range r.Sums {
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\t%t\t%.1e\t%.2f s\n", s.Clients, s.Entries, s.Dropouts, s.Phase, s.Exact, s.Error,
			s.Processor)
	}
	fmt.Fprintln(w, "\nRATE\tNOISE\tSTEPS\tDELTA\tCLASSIC\tEPSILON")
	for _, v := range r.Vectors {
		fmt.Fprintf(w, "%.4g\t%g\t%.0f\t%g\t%.4f\t%.4f\n", v.Rate, v.Noise, v.Steps, v.Delta, v.Classic, v.Epsilon)
	}
	fmt.Fprintln(w, "\nIMAGES SEARCHED IN\tMEAN PSNR\tBEST\tPICKED OF 101")
	for _, f := range r.Inversion {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%d\n", f.From, f.Mean, f.Best, f.Picked)
	}
	fmt.Fprintln(w, "\nEPSILON\tNOISE\tAREA UNDER THE CURVE\tEXAMPLES RIGHT\tOTHERS RIGHT")
	for _, a := range r.Members {
		fmt.Fprintf(w, "%s\t%g\t%.3f\t%.1f %%\t%.1f %%\n", epsilon(a.Epsilon), a.Noise, a.Area, 100*a.Seen, 100*a.Unseen)
	}
	fmt.Fprintln(w, "\nDIRICHLET\tEPSILON\tNOISE\tRIGHT")
	for _, p := range r.Curve {
		fmt.Fprintf(w, "%g\t%s\t%g\t%.1f %%\n", p.Dirichlet, epsilon(p.Epsilon), p.Noise, 100*p.Accuracy)
	}
	fmt.Fprintln(w, "\nDIRICHLET\tMETHOD\tRIGHT")
	for _, m := range r.Methods {
		fmt.Fprintf(w, "%g\t%s\t%.1f %%\n", m.Dirichlet, m.Name, 100*m.Accuracy)
	}
	fmt.Fprintln(w, "\nADAPTERS\tLOSS\tABOVE ONE OWNER\tBYTES OF AN UPDATE")
	for _, x := range r.Adapters {
		fmt.Fprintf(w, "%s\t%.4f\t%+.1f %%\t%d\n", x.Name, x.Loss, 100*x.Above, x.Bytes)
	}
	e := r.Sealed
	fmt.Fprintln(w, "\nENCRYPTED SHARDS\tREAD\tTRAINING\tENCRYPTION\tKEYS AND DECRYPTION\tOF A ROUND")
	fmt.Fprintf(w, "%d\t%d\t%.3f s\t%.4f s\t%.4f s\t%.2f %%\n\n", e.Shards, e.Read, e.Training, e.Sealing, e.Opening,
		100*e.Part)
	fmt.Fprintln(w, "DIRICHLET\tMEMBER OF A COMMITTEE\tROUNDS\tPAY OF AN HONEST ONE")
	for _, c := range r.Committees {
		for _, m := range c.Earned {
			fmt.Fprintf(w, "%g\t%s\t%d\t%.1f %%\n", c.Dirichlet, m.Kind, m.Rounds, 100*m.Paid)
		}
	}
	fmt.Fprintln(w, "\nDIRICHLET\tSCORE MOVED BY A THIRD OF A PANEL\tOF ALL EVALUATORS\tROUNDS THEY DECIDE")
	for _, c := range r.Committees {
		fmt.Fprintf(w, "%g\t%.2f sd\t%.2f sd\t%d of %d\n", c.Dirichlet, c.Moved.Scores, c.Moved.Drawn, c.Moved.Captured,
			c.Rounds)
	}
	fmt.Fprintln(w, "\nUPDATES\tBYTES SENT\tRECEIVED\tOWNER\tCOORDINATOR\tPROTECTS\tLEAVES OPEN")
	for _, p := range r.Prices {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.4f s\t%.4f s\t%s\t%s\n", p.Way, p.Sent, p.Received, p.Owner, p.Server, p.Protects,
			p.Leaves)
	}
	fmt.Fprintln(w, "\nANSWERS\tBYTES SENT\tRECEIVED\tPROCESSOR\tELAPSED\tDIFFERENCE\tPROTECTS\tLEAVES OPEN")
	for _, a := range r.Answers {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.5f s\t%.4f s\t%.6f\t%s\t%s\n", a.Way, a.Sent, a.Received, a.Processor, a.Elapsed,
			a.Away, a.Protects, a.Leaves)
	}
	fmt.Fprintln(w)
	figure.PrintBars(w, r.Bars)
	return figure.Judge(r.Bars, w.Flush())
}

// epsilon is one for people; 0: there is no noise.
func epsilon(x float64) string {
	if x == 0 {
		return "no noise"
	}
	return fmt.Sprintf("%.3f", x)
}
