// Package bench is starling bench: commands that measure this machine and show what came of it. The measurements are in
// node/benchmark.
package bench

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/arena"
	"github.com/starling-network/starling/cmd/starling/bench/experts"
	"github.com/starling-network/starling/cmd/starling/bench/money"
	"github.com/starling-network/starling/cmd/starling/bench/people"
	"github.com/starling-network/starling/cmd/starling/bench/pipeline"
	"github.com/starling-network/starling/cmd/starling/bench/privacy"
	"github.com/starling-network/starling/cmd/starling/bench/proof"
	"github.com/starling-network/starling/cmd/starling/bench/reasoning"
	"github.com/starling-network/starling/cmd/starling/bench/reinforce"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/machine"
)

// Command is starling bench.
func Command(c *terminal.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the speed of this machine",
		Long: `Measure matrix products, training steps, generation, audits, transfers, the chain, strategies, the dashboard,
attacks, learning from rewards, votes over answers, the market of models, proofs, estimates of pay and the GPUs of this
machine, or print the losses of a training run to compare them with those of another implementation. Nothing is sent
anywhere. Each takes less than a minute with --quick, which says less exactly what it says without. all runs every one.
A bench that has measured and whose figures miss a bar prints all of them, names those bars last on standard error
(BARS_MISSED), and has the exit code 12; a bar that a missing tool keeps from being measured does not count.

STARLING_KERNELS chooses the kernels: portable, avx2, avx512 or neon; without it the fastest that the
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
  starling bench memory --quick
  starling bench plan --quick
  starling bench tokenize --quick
  starling bench device --quick
  starling bench rl --quick
  starling bench people --quick
  starling bench pipeline --quick
  starling bench privacy --quick
  starling bench reasoning --quick
  starling bench arena --quick
  starling bench money --quick
  starling bench proof --quick
  starling bench experts examples/experts.yaml --quick
  starling bench all --quick
  starling bench compat
  starling bench precision --data text.txt --quick
  starling bench audit --threads 1 -o json
  starling bench losses --model gpt2/ --batches batches.bin --steps 100 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		matmulCommand(c), trainCommand(c), generateCommand(c), auditCommand(c), lossesCommand(c), networkCommand(c),
		chainCommand(c), operationsCommand(c), strategiesCommand(c), webCommand(c), attackCommand(c), memoryCommand(c),
		tokenizeCommand(c), planCommand(c), deviceCommand(c), reinforce.Command(c), precisionCommand(c),
		compatCommand(c), people.Command(c), experts.Command(c), pipeline.Command(c), privacy.Command(c),
		reasoning.Command(c), arena.Command(c), money.Command(c), proof.Command(c),
	)
	for _, measures := range cmd.Commands() {
		measures.Annotations = terminal.FiguresOnly
	}
	cmd.AddCommand(allCommand(c, cmd.Commands()))
	return cmd
}

func presetFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "preset", machine.Presets[0].Name, "the model: "+strings.Join(PresetNames(), ", "))
}

// PresetNames are the models that --preset takes.
func PresetNames() (names []string) {
	for _, p := range machine.Presets {
		names = append(names, p.Name)
	}
	return names
}
