package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node"
)

func (c *cli) generate() *cobra.Command {
	var opt node.GenerateOptions
	cmd := &cobra.Command{
		Use:   "generate OUT",
		Short: "Sample text from a trained model",
		Long: `Continue a prompt with the model in a folder (config.json, tokenizer.json, model.safetensors). The same
prompt, seed and temperature give the same text.

With -o json: {"prompt","text"}.`,
		Example: `  starling generate out/quickstart --prompt "func " --tokens 100
  starling generate out/quickstart --prompt "// Package " --tokens 60 --temperature 0.8 --seed 7
  starling generate out/quickstart --prompt "type " --tokens 40 --temperature 0 -o json`,
		Args: exactly("OUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opt.Tokens < 1 || opt.Temperature < 0 {
				return usage(cmd, errors.New("--tokens must be at least 1 and --temperature at least 0"))
			}
			g, err := node.OpenModel(args[0])
			if errors.Is(err, node.ErrModel) {
				return terminal.WithExit(&terminal.Problem{
					Code: "MODEL_UNREADABLE", What: "cannot open the model in " + args[0], Why: err.Error(), Fix: "give the output folder of a finished run",
				}, terminal.ExitNotFound)
			}
			if err != nil {
				return err
			}
			var text strings.Builder
			emit := func(s string) error { _, err := text.WriteString(s); return err }
			if c.output != outputJSON {
				fmt.Print(opt.Prompt)
				emit = func(s string) error { _, err := fmt.Print(s); return err }
			}
			if err := g.Generate(cmd.Context(), opt, emit); err != nil {
				return interrupted(cmd.Context(), err, "")
			}
			if c.output == outputJSON {
				return terminal.PrintJSON(os.Stdout, map[string]string{"prompt": opt.Prompt, "text": text.String()})
			}
			fmt.Println()
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Prompt, "prompt", "", "text to continue")
	f.IntVar(&opt.Tokens, "tokens", 64, "number of tokens to add")
	f.Float64Var(&opt.Temperature, "temperature", 0.8, "0 takes the most likely token every time")
	f.IntVar(&opt.TopK, "top-k", 0, "sample among the K most likely tokens; 0: among all")
	f.Uint64Var(&opt.Seed, "seed", 0, "seed of the sampling")
	return cmd
}
