// Package model is starling model: commands that list, fetch, show, measure, export, serve and own models. Models are
// made by starling train.
package model

import (
	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/apply"
	"github.com/starling-network/starling/cmd/starling/catalog"
	"github.com/starling-network/starling/cmd/starling/hosted"
	"github.com/starling-network/starling/cmd/starling/layered"
	"github.com/starling-network/starling/cmd/starling/proof"
	"github.com/starling-network/starling/cmd/starling/serving"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/trade"
	"github.com/starling-network/starling/cmd/starling/triple"
	"github.com/starling-network/starling/cmd/starling/usage"
)

// Command is starling model.
func Command(c *terminal.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "List, fetch, export, serve and measure trained models",
		Long: `Work with the model in a folder: the output folder of a run, or a model in Hugging Face form
(config.json, tokenizer.json, model.safetensors or its shards). list, pull and provenance are about the models of
finished runs, in a folder of runs or at a server; shares, pay, claim and transfer about who owns models on a network.`,
		Example: `  starling model serve out/quickstart
  starling model export out/quickstart --format gguf --type q8_0 --file quickstart.gguf
  starling model chat out/quickstart
  starling model pull quickstart --api http://10.0.0.7:7300 --to models/quickstart
  starling model eval out/quickstart --data other.txt
  starling model card out/quickstart --verify
  starling model show out/quickstart -o json
  starling model shares job-7f3a --network http://127.0.0.1:26601`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(GenerateCommand(c), listCommand(c), pullCommand(c), pushCommand(c), exportCommand(c),
		chatCommand(c), serving.Serve(c), serving.Tune(c),
		evalCommand(c), apply.Check(c), apply.Accuse(c), apply.Defend(c), apply.Classify(c), apply.Embed(c),
		apply.Sample(c), cardCommand(c),
		provenanceCommand(c), showCommand(c))
	cmd.AddCommand(proof.Command(c))
	cmd.AddCommand(catalog.Commands(c)...)
	cmd.AddCommand(append(trade.Commands(c), hosted.Commands(c)...)...)
	cmd.AddCommand(append(layered.Commands(c), triple.Commands(c)...)...)
	return cmd
}
