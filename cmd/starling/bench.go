package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node"
	"github.com/starling-network/starling/node/benchmark"
)

func benchCommand(c *terminal.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the speed of this machine",
		Long: `Measure matrix products, training steps, generation, audits, transfers, the chain, strategies, the dashboard
and attacks on this machine, or print the losses of a training run to compare them with those of another
implementation. Nothing is sent anywhere. Each takes less than a minute with --quick, which says less exactly what it
says without. all runs every one.

STARLING_KERNELS chooses the kernels: portable, avx2 or avx512; without it the fastest that the
processor and the system can run. The results are the same bits.`,
		Example: `  starling bench matmul --threads 1
  starling bench train --preset gpt2-10m
  starling bench generate --preset llama-125m -o json
  starling bench network --quick
  starling bench chain --quick
  starling bench operations --seed 7
  starling bench strategies --quick
  starling bench web --quick
  starling bench attack --quick
  starling bench all --quick
  starling bench compat
  starling bench audit --threads 1 -o json
  starling bench losses --model gpt2/ --batches batches.bin --steps 100 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		benchMatmulCommand(c), benchTrainCommand(c), benchGenerateCommand(c), benchAuditCommand(c), benchLossesCommand(c),
		benchNetworkCommand(c), benchChainCommand(c),
		benchOperationsCommand(c), benchStrategiesCommand(c), benchWebCommand(c), benchAttackCommand(c),
		benchCompatCommand(c),
	)
	for _, measures := range cmd.Commands() {
		measures.Annotations = terminal.FiguresOnly
	}
	cmd.AddCommand(benchAll(c, cmd.Commands()))
	return cmd
}

// quickFlag is for who wants to see that a measurement runs, and about what it gives.
func quickFlag(cmd *cobra.Command, quick *bool) {
	cmd.Flags().BoolVar(quick, "quick", false, "take less than a minute")
}

// few is how many of what a measurement takes when it is to be quick, unless a flag says how many.
func few(cmd *cobra.Command, flag string, value *int, quick bool, fewer int) {
	if quick && !cmd.Flags().Changed(flag) {
		*value = min(*value, fewer)
	}
}

func presetFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "preset", benchmark.Presets[0].Name, "the model: "+strings.Join(presetNames(), ", "))
}

func benchMatmulCommand(c *terminal.Console) *cobra.Command {
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
			products := benchmark.Products
			if transposed {
				products = append(products[:len(products):len(products)], benchmark.Transposed...)
			}
			if quick {
				products = products[:min(len(products), quickProducts)]
			}
			r, err := benchmark.Matmul(cmd.Context(), products, threads)
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
	quickFlag(cmd, &quick)
	return cmd
}

// quickProducts is how many products are measured where that is to be quick.
const quickProducts = 3

// shape is for people: 48 x [256, 64] x [64, 256]', with a mark on what lies in memory transposed.
func shape(p benchmark.Product) string {
	mark := func(transposed bool) string { return strings.Repeat("'", map[bool]int{true: 1}[transposed]) }
	s := fmt.Sprintf("[%d, %d]%s x [%d, %d]%s", p.M, p.K, mark(p.TransA), p.K, p.N, mark(p.TransB))
	if p.Batch > 1 {
		s = fmt.Sprintf("%d x %s", p.Batch, s)
	}
	return s
}

func benchTrainCommand(c *terminal.Console) *cobra.Command {
	var threads, steps int
	var name string
	var quick bool
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Measure training steps",
		Long: `Measure forward pass, backward pass and AdamW in float32 on random tokens. Tokens a second are those of
the median step, CPU seconds those of the cheapest, all threads together; the first step is not counted.

With -o json: {"preset","tokens_per_second","cpu_seconds","peak_mib","parameters","threads","gflops",...}.`,
		Example: `  starling bench train
  starling bench train --preset llama-10m --threads 1 --steps 20
  starling bench train --preset gpt2-124m -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := benchmark.PresetNamed(name)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			few(cmd, "steps", &steps, quick, 2)
			r, err := benchmark.Train(cmd.Context(), p, threads, steps)
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
	usage.ThreadsFlag(cmd, &threads)
	quickFlag(cmd, &quick)
	return cmd
}

func benchGenerateCommand(c *terminal.Console) *cobra.Command {
	var o benchmark.GenerateOptions
	var name string
	var quick bool
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Measure the generation of text",
		Long: `Measure how fast a model with random weights reads a prompt and continues it, token by token, in float32.
The fastest of the repetitions counts. --batch adds how fast it continues so many texts at once: of all together.
--gguf also writes the model, a Llama, to a file for llama.cpp.

With -o json: {"preset","tokens_per_second","prompt_tokens_per_second","tokens_per_cpu_second","prompt_tokens",
"tokens","peak_mib","parameters","threads","kernels","batches":[{"texts","tokens_per_second","tokens_per_cpu_second"}]}.`,
		Example: `  starling bench generate
  starling bench generate --preset llama-10m --batch 4,16
  starling bench generate --preset llama-125m --threads 1 --tokens 64
  starling bench generate --preset llama-10m --gguf llama-10m.gguf -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Preset, err = benchmark.PresetNamed(name); err != nil {
				return cause.Measurement(cmd, err)
			}
			few(cmd, "tokens", &o.Tokens, quick, 16)
			few(cmd, "repeat", &o.Repeat, quick, 1)
			r, err := benchmark.Generate(cmd.Context(), o)
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
	quickFlag(cmd, &quick)
	return cmd
}

func benchAuditCommand(c *terminal.Console) *cobra.Command {
	var threads, steps, repeat int
	var name string
	var quick bool
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
			p, err := benchmark.PresetNamed(name)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			few(cmd, "steps", &steps, quick, 4)
			few(cmd, "repeat", &repeat, quick, 1)
			r, err := benchmark.Audit(cmd.Context(), p, threads, steps, repeat)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			overhead, err := whole.measure(cmd.Context())
			if err != nil {
				return cause.Train(err)
			}
			if overhead != nil {
				r.Bars = append(r.Bars, benchmark.Below("run with audits / without", overhead.Ratio(), overheadBar))
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(struct {
					*benchmark.AuditReport
					Overhead *node.Overhead `json:"overhead,omitempty"`
				}{r, overhead}))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "PRESET\tSTEPS\tTHREADS\tTRAIN CPU S\tAUDIT CPU S\tTRAIN S\tAUDIT "+
				"S\n%s\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\n",
				r.Preset, r.Steps, r.Threads, r.TrainCPU, r.AuditCPU, r.TrainSeconds, r.AuditSeconds)
			for _, b := range r.Bars {
				fmt.Fprintf(w, "%s: %.3f, below %.2f: %v\n", b.Name, b.Value, b.Bar, b.Holds)
			}
			return w.Flush()
		},
	}
	f := cmd.Flags()
	presetFlag(cmd, &name)
	usage.ThreadsFlag(cmd, &threads)
	f.IntVar(&steps, "steps", 20, "inner steps of the unit")
	f.IntVar(&repeat, "repeat", 2, "repetitions of each side")
	quickFlag(cmd, &quick)
	f.StringVar(&whole.job, "job", "", "job file to train with audits and without; empty: none")
	f.StringArrayVar(&whole.set, "set", nil, "change a key of the job file: KEY=VALUE (repeatable)")
	f.IntVar(&whole.warmUp, "warm-up", 30, "rounds of the job that do not count")
	f.IntVar(&whole.runs, "runs", 2, "runs of the job of each kind")
	f.Float64Var(&whole.audited, "audited", 0.05, "part of the units of the job that is audited in the end")
	return cmd
}

func benchLossesCommand(c *terminal.Console) *cobra.Command {
	var o benchmark.LossesOptions
	var quick bool
	cmd := &cobra.Command{
		Use:   "losses",
		Short: "Print the losses of training steps on given batches",
		Long: `Train a GPT-2 or Llama from a folder in Hugging Face form (config.json, model.safetensors) on given
batches with AdamW (betas 0.9 and 0.95, eps 1e-8, weight decay on every tensor, constant learning rate), and print
the loss of every step. The file of batches holds little-endian int32 [steps, batch, context+1].

With -o json: {"losses":[NUMBER]}.`,
		Example: `  starling bench losses --model gpt2/ --batches batches.bin --steps 100
  starling bench losses --model gpt2/ --batches batches.bin --steps 20 --lr 1e-3 --wd 0 --clip 1
  starling bench losses --model gpt2/ --batches batches.bin --steps 5 --batch 4 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Model == "" || o.Batches == "" {
				return usage.Error(cmd, errors.New("--model and --batches are needed"))
			}
			few(cmd, "steps", &o.Steps, quick, 3)
			r, err := benchmark.Losses(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(r))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "STEP\tLOSS")
			for i, loss := range r.Losses {
				fmt.Fprintf(w, "%d\t%.6f\n", i+1, loss)
			}
			return w.Flush()
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Model, "model", "", "folder of the model")
	f.StringVar(&o.Batches, "batches", "", "file of batches")
	quickFlag(cmd, &quick)
	f.IntVar(&o.Steps, "steps", 100, "number of steps")
	f.IntVar(&o.Batch, "batch", 8, "sequences of a step")
	f.Float64Var(&o.Rate, "lr", 3e-4, "learning rate")
	f.Float64Var(&o.Decay, "wd", 0.1, "weight decay")
	f.Float64Var(&o.Clip, "clip", 0, "bound of the gradient norm; 0: none")
	usage.ThreadsFlag(cmd, &o.Threads)
	return cmd
}
