package model

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/web/openai"
)

func chatCommand(c *terminal.Console) *cobra.Command {
	var o serve.Options
	var r openai.Request
	var system string
	cmd := &cobra.Command{
		Use:   "chat MODEL",
		Short: "Talk to a model, a line at a time",
		Long: `Talk to the model in a folder: each line of standard input is a turn, and the model answers it as it comes,
with all turns before in view. A conversation that outgrows the model's context forgets its first turns. It is rendered
by the model's chat template, or as lines "User: " and "Assistant: ". The same lines with the same seed give the same
answers. starling model serve serves a model to programs.

With -o json or jsonl: {"role","content","tokens","finish_reason"} for each answer.`,
		Example: `  starling model chat out/quickstart
  echo "What is a channel?" | starling model chat out/quickstart --tokens 40 --temperature 0 -o json`,
		Args: usage.Exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.Max < 1 || r.Temperature < 0 || r.TopP <= 0 || r.TopP > 1 || o.Threads < 1 {
				return usage.Error(cmd, errors.New("--tokens and --threads are at least 1, --temperature is at least 0, and "+
					"--top-p is above 0 and at most 1"))
			}
			o.Texts = 1
			e, err := serve.Open(args[0], o)
			if err != nil {
				return terminal.UnreadableModel("use", args[0], err, terminal.AnyModel)
			}
			defer e.Close()
			c.NoteIgnored(args[0], e.Ignored())
			r.Model, r.Likely = e.Models()[0].Name, -1
			err = converse(cmd.Context(), c, serve.NewConversation(e, r, system), cmd.InOrStdin())
			return terminal.IfInterrupted(cmd.Context(), err, cmd.CommandPath()+" "+args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&system, "system", "", "text that the model reads first")
	f.IntVar(&r.Max, "tokens", 128, "most tokens of an answer")
	f.Float64Var(&r.Temperature, "temperature", 0.8, "0 takes the most likely token every time")
	f.Float64Var(&r.TopP, "top-p", 1, "draw among the most likely tokens that have this probability in sum; 1: among all")
	f.Uint64Var(&r.Seed, "seed", 0, "seed of the drawing")
	f.IntVar(&o.Threads, "threads", kernel.Cores, "number of threads")
	return cmd
}

// converse answers the lines of a reader.
func converse(ctx context.Context, c *terminal.Console, talk *serve.Conversation, from io.Reader) error {
	prompt := func() {}
	if f, ok := from.(*os.File); ok && terminal.IsTerminal(f) && !c.Form.Machine() && !c.Quiet {
		prompt = func() { fmt.Fprint(os.Stderr, "> ") }
	}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for prompt(); lines.Scan(); prompt() {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		text, made, err := talk.Say(ctx, line, func(piece string) error {
			if c.Form.Machine() {
				return nil
			}
			_, err := fmt.Print(piece)
			return err
		})
		if err != nil {
			return err
		}
		if c.Form.Machine() {
			err = c.PrintLine(map[string]any{"role": "assistant", "content": text, "tokens": made.Tokens,
				"finish_reason": made.Finish})
		} else {
			_, err = fmt.Println()
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}
