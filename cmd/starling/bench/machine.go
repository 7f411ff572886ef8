package bench

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/machine"
)

func matmulCommand(c *terminal.Console) *cobra.Command {
	var threads int
	var transposed, quick bool
	cmd := &cobra.Command{
		Use:   "matmul",
		Short: "Measure matrix products",
		Long: `Measure products of float32 matrices, squares and the shapes of a small GPT, each from its fastest run:
operations a second of the clock, and of processor time of all threads together, which depends less on
what else the machine does.

With -o json: {"gflops":{NAME:NUMBER},"gflops_cpu":{NAME:NUMBER},"threads","kernels"}.`,
		Example: `  starling bench matmul
  starling bench matmul --threads 1 --transposed -o json
  STARLING_KERNELS=portable starling bench matmul --threads 2`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			products := machine.Products
			if transposed {
				products = append(products[:len(products):len(products)], machine.Transposed...)
			}
			if quick {
				products = products[:min(len(products), quickProducts)]
			}
			r, err := machine.Matmul(cmd.Context(), products, threads)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(r))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "PRODUCT\tSHAPE\tGFLOP/S\tGFLOP/CPU S\t%d threads, %s\n", r.Threads, r.Kernels)
			for _, p := range products {
				fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t\n", p.Name, shape(p), r.GFLOPS[p.Name], r.CPU[p.Name])
			}
			return w.Flush()
		},
	}
	usage.ThreadsFlag(cmd, &threads)
	cmd.Flags().BoolVar(&transposed, "transposed", false, "also the products of the backward pass")
	figure.QuickFlag(cmd, &quick)
	return cmd
}

// quickProducts is how many products are measured where that is to be quick.
const quickProducts = 3

// shape is for people: 48 x [256, 64] x [64, 256]', with a mark on what lies in memory transposed.
func shape(p machine.Product) string {
	mark := func(transposed bool) string { return strings.Repeat("'", map[bool]int{true: 1}[transposed]) }
	s := fmt.Sprintf("[%d, %d]%s x [%d, %d]%s", p.M, p.K, mark(p.TransA), p.K, p.N, mark(p.TransB))
	if p.Batch > 1 {
		s = fmt.Sprintf("%d x %s", p.Batch, s)
	}
	return s
}

func trainCommand(c *terminal.Console) *cobra.Command {
	var threads, steps int
	var name string
	var quick, numerics bool
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Measure training steps",
		Long: `Measure forward pass, backward pass and AdamW in float32 on random tokens. Tokens a second are those of
the median step, CPU seconds those of the cheapest, all threads together; the first step is not counted. --numerics
compares the versions of the numerics, in turn: the processor time of a step and of each function in version 1, by
that in version 2.

With -o json: {"preset","tokens_per_second","cpu_seconds","peak_mib","parameters","threads","gflops",...}; with
--numerics {"step","functions":{NAME},"bars"}.`,
		Example: `  starling bench train
  starling bench train --numerics
  starling bench train --preset llama-10m --threads 1 --steps 20
  starling bench train --preset gpt2-124m -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := machine.PresetNamed(name)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			figure.Few(cmd, "steps", &steps, quick, 2)
			if numerics {
				return compareNumerics(c, cmd, p, threads, steps)
			}
			r, err := machine.Train(cmd.Context(), p, threads, steps)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(r))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "PRESET\tPARAMETERS\tBATCH\tTHREADS\tTOKENS/S\tCPU S/STEP\tPEAK MIB\tBUILD MS\tROOT "+
				"MS\n%s\t%s\t%d x %d\t%d\t%.1f\t%.3f\t%d\t%.1f\t%.1f\n",
				r.Preset, terminal.Number(float64(r.Parameters)), p.Batch, p.Length, r.Threads, r.TokensPerSecond, r.CPUSeconds,
				r.PeakMiB,
				r.BuildSeconds*1e3, r.RootSeconds*1e3)
			return w.Flush()
		},
	}
	f := cmd.Flags()
	presetFlag(cmd, &name)
	f.IntVar(&steps, "steps", 8, "number of steps that count")
	f.BoolVar(&numerics, "numerics", false, "compare the versions of the numerics")
	usage.ThreadsFlag(cmd, &threads)
	figure.QuickFlag(cmd, &quick)
	return cmd
}

// compareNumerics prints how fast version 2 of the numerics is, compared with version 1.
func compareNumerics(c *terminal.Console, cmd *cobra.Command, p machine.Preset, threads, times int) error {
	r, err := machine.Numerics(cmd.Context(), p, threads, times)
	if err != nil {
		return cause.Measurement(cmd, err)
	}
	if c.Form.Machine() {
		return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
	}
	_, err = fmt.Print(r)
	return figure.Judge(r.Bars, err)
}

func generateCommand(c *terminal.Console) *cobra.Command {
	var o machine.GenerateOptions
	name, quick := "", false
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Measure the generation of text",
		Long: `Measure how fast a model with random weights reads a prompt and continues it, token by token, in float32.
The fastest of the repetitions counts. --batch adds how fast it continues so many texts at once: of all together.
--gguf also writes the model, a Llama, to a file for llama.cpp.

With -o json: {"preset","tokens_per_second","prompt_tokens_per_second","tokens_per_cpu_second","prompt_tokens",
"tokens","peak_mib","parameters","threads","kernels","batches":[{"texts","tokens_per_second",` +
			`"tokens_per_cpu_second"}]}.`,
		Example: `  starling bench generate
  starling bench generate --preset llama-10m --batch 4,16
  starling bench generate --preset llama-125m --threads 1 --tokens 64
  starling bench generate --preset llama-10m --gguf llama-10m.gguf -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Preset, err = machine.PresetNamed(name); err != nil {
				return cause.Measurement(cmd, err)
			}
			figure.Few(cmd, "tokens", &o.Tokens, quick, 16)
			figure.Few(cmd, "repeat", &o.Repeat, quick, 1)
			r, err := machine.Generate(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(r))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "PRESET\tPARAMETERS\tTHREADS\tTOKENS/S\tPROMPT TOKENS/S\tPEAK MIB\n%s\t%s\t%d\t%.1f\t%.1f\t%d\n",
				r.Preset, terminal.Number(float64(r.Parameters)), r.Threads, r.TokensPerSecond, r.PromptTokensPerSecond, r.PeakMiB)
			for _, b := range r.Batches {
				fmt.Fprintf(w, "%d texts at once\t\t\t%.1f\t\t\n", b.Texts, b.TokensPerSecond)
			}
			return w.Flush()
		},
	}
	f := cmd.Flags()
	presetFlag(cmd, &name)
	usage.ThreadsFlag(cmd, &o.Threads)
	f.IntSliceVar(&o.Batches, "batch", nil, "numbers of texts to continue at once, such as 4,16")
	f.IntVar(&o.Prompt, "prompt-tokens", 32, "tokens of the prompt")
	f.IntVar(&o.Tokens, "tokens", 128, "tokens to generate")
	f.IntVar(&o.Repeat, "repeat", 3, "repetitions that count")
	f.StringVar(&o.GGUF, "gguf", "", "file to write the model to")
	figure.QuickFlag(cmd, &quick)
	return cmd
}
