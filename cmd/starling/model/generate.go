package model

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/node/textgen"
)

// GenerateCommand is starling model generate.
func GenerateCommand(c *terminal.Console) *cobra.Command {
	var opt textgen.Options
	cmd := &cobra.Command{
		Use:   "generate MODEL",
		Short: "Continue text with a trained model", Annotations: terminal.FiguresOnly,
		Long: `Continue a prompt with the model in a folder: the output folder of a run, or one in Hugging Face form
(config.json, tokenizer.json, model.safetensors or its shards), of a family in docs/models.md. Text is written as it
comes. The same model, prompt and options give the same text on every machine.

A token is drawn from softmax(logits/temperature), among the --top-k most likely and then the fewest
that have --top-p of the probability. The text ends with the model's end token or after --tokens; one
that outgrows the model's context continues from its latest half.

With -o json: {"prompt","text","prompt_tokens","tokens","finish_reason"}, where finish_reason is stop or length.`,
		Example: `  starling model generate out/quickstart --prompt "func " --tokens 100
  starling model generate out/quickstart --prompt "// Package " --temperature 0.7 --top-k 40 --top-p 0.95 --seed 7
  starling model generate out/quickstart --prompt "type " --tokens 40 --temperature 0 -o json`,
		Args: usage.Exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opt.Tokens < 1 {
				return usage.Error(cmd, errors.New("--tokens must be at least 1"))
			}
			if err := opt.Sampling.Check(); err != nil {
				return usage.Error(cmd, err)
			}
			g, err := textgen.OpenModel(args[0])
			if err != nil {
				return generateError(cmd, args[0], err)
			}
			c.NoteIgnored(args[0], g.Ignored())
			var text strings.Builder
			shown := opt.Prompt // before the first piece
			made, err := g.Generate(cmd.Context(), opt, func(piece string) error {
				text.WriteString(piece)
				if c.Form.Machine() {
					return nil
				}
				_, err := fmt.Print(shown + piece)
				shown = ""
				return err
			})
			if err != nil {
				return generateError(cmd, args[0], err)
			}
			if !c.Form.Machine() {
				fmt.Println(shown)
				return nil
			}
			return c.Form.Print(os.Stdout, terminal.Figures(struct {
				Prompt string `json:"prompt"`
				Text   string `json:"text"`
				*textgen.Generated
			}{opt.Prompt, text.String(), made}))
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Prompt, "prompt", "", "text to continue")
	f.IntVar(&opt.Tokens, "tokens", 64, "number of tokens to add, at most")
	f.Float64Var(&opt.Sampling.Temperature, "temperature", 0.8, "0 takes the most likely token every time")
	f.IntVar(&opt.Sampling.TopK, "top-k", 0, "draw among the K most likely tokens; 0: among all")
	f.Float64Var(&opt.Sampling.TopP, "top-p", 1, "draw among the most likely tokens that have this probability in sum; "+
		"1: among all")
	f.Uint64Var(&opt.Sampling.Seed, "seed", 0, "seed of the drawing")
	f.BoolVar(&opt.IgnoreEnd, "ignore-end", false, "continue after the token that ends a text")
	return cmd
}

// generateError gives the errors of a generation their exit codes.
func generateError(cmd *cobra.Command, dir string, err error) error {
	switch {
	case errors.Is(err, textgen.ErrModel):
		return terminal.UnreadableModel("use", dir, err, terminal.AnyModel)
	case errors.Is(err, generate.ErrContext):
		return terminal.WithExit(&terminal.Problem{
			Code: "PROMPT_TOO_LONG", What: "the prompt is longer than the model's context", Why: err.Error(),
			Fix: "give a shorter --prompt",
		}, terminal.ExitUsage)
	case errors.Is(err, generate.ErrNumbers):
		return terminal.WithExit(&terminal.Problem{
			Code: "MODEL_BROKEN", What: "the model in " + dir + " computes no finite numbers", Why: err.Error(),
			Fix: "its weights are too large: train with a lower learning_rate or with max_grad_norm",
		}, terminal.ExitFailure)
	}
	return terminal.IfInterrupted(cmd.Context(), err, "")
}
