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
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/benchmark/devices"
)

func deviceCommand(c *terminal.Console) *cobra.Command {
	o, quick := devices.Options{Elements: 1 << 20, Times: 20, Threads: kernel.Cores}, false
	cmd := &cobra.Command{
		Use:   "device",
		Short: "Compare the GPUs and other devices of this machine with the processor, bit for bit",
		Long: `Run the comparison suite on every OpenCL device of this machine: each kind of operator on ordinary, tiny, huge,
half-way and special numbers, against the portable kernels. A device is exact if it has all that exact results
need and no element differs. starling-device, in the folder of starling, loads the drivers. More than 2^20 --elements
are compared in pieces of 2^20, each with numbers of its own and with the other operators again; 143000000 are 10^9 for
an elementwise operator, which gets seven sorts.

Before that, the products of gpt2-10m and whole steps of it are measured on the processor in float32 and as
training.precision exact8 and exact15 have them, --times times each, in turn; the ratios have bars on processors with
AVX-512 VNNI.

With -o json: {"devices":[{"name","driver","memory_bytes","missing","exact","elements","differ","failed","seconds",
"results":[{"kind","cases","elements","differ","failed"}]}],"none","integers":{"products":{"8","15"},"step":{"8","15"},
"vnni"},"bars":[{"name","value","bar","holds"}]}; none says why there are no devices.`,
		Example: `  starling bench device --quick
  starling bench device --elements 4000000 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			figure.Few(cmd, "elements", &o.Elements, quick, 1<<12)
			figure.Few(cmd, "times", &o.Times, quick, 3)
			if o.Elements < 64 {
				return terminal.WithExit(&terminal.Problem{Code: "USAGE", What: fmt.Sprintf("--elements is %d", o.Elements),
					Why: "the sorts of numbers have more", Fix: "give 64 or more"}, terminal.ExitUsage)
			}
			o.Progress = c.Say
			r, err := devices.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			for _, bits := range []string{"8", "15"} {
				fmt.Fprintf(w, "integers of %s bits, of the speed of float32\tproducts %.2f, a step %.2f\n", bits,
					r.Integers.Products[bits], r.Integers.Step[bits])
			}
			if r.None != "" {
				fmt.Fprintf(w, "no device: %s\n", r.None)
			}
			for _, d := range r.Devices {
				fmt.Fprintf(w, "%s\t%s\n", d.Name, admission(d))
			}
			figure.PrintBars(w, r.Bars)
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	figure.QuickFlag(cmd, &quick)
	cmd.Flags().IntVar(&o.Times, "times", o.Times, "measurements of each product and step on the processor")
	cmd.Flags().IntVar(&o.Elements, "elements", o.Elements, "numbers of each sort that an elementwise operator gets")
	return cmd
}

// admission says whether a device is exact, and why not.
func admission(d devices.Device) string {
	switch {
	case d.Missing != "":
		return "not exact: it has no " + d.Missing
	case d.Failed != "":
		return "not exact: " + d.Failed
	}
	return fmt.Sprintf("exact: none of %d elements differ", d.Elements)
}
