package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/source"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/web/openai"
)

func modelListCommand(c *terminal.Console) *cobra.Command {
	var p source.Place
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the models that finished runs left",
		Long: `List the models that the finished runs of a folder or of a server left, the latest first.

With -o json: {"models":[{"id","name","state_root","eval_loss","steps","tokens","rounds","signers","facts","files":[{"name",
"kind","bytes","modified"}],"contributors"}]}.`,
		Example: `  starling model list
  starling model list --api http://127.0.0.1:7300 -o name`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := p.Open(cmd, "")
			if err != nil {
				return err
			}
			defer a.Close()
			models, err := a.Models(cmd.Context())
			if err != nil {
				return source.Explain(err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Items("models", models, func(m api.Model) string { return m.ID }))
			}
			w := terminal.NewColumns(os.Stdout, c.Form, "MODEL", "EVAL LOSS", "STEPS", "TOKENS", "ROUNDS", "SIZE", "+SIGNERS",
				"+STATE ROOT")
			for _, m := range models {
				var bytes int64
				for _, f := range m.Files {
					bytes += f.Bytes
				}
				w.Row(m.ID, terminal.Figure(m.EvalLoss), m.Steps, m.Tokens, m.Rounds, terminal.Bytes(uint64(bytes)), m.Signers,
					m.StateRoot)
			}
			return w.Flush()
		},
	}
	p.Flags(cmd)
	return cmd
}

func modelPullCommand(c *terminal.Console) *cobra.Command {
	var p source.Place
	var to string
	cmd := &cobra.Command{
		Use:   "pull JOB --to DIR",
		Short: "Copy the model of a finished run from a server",
		Long: `Copy the files of the model of a finished run into a folder, which starling model generate, chat and serve then
take: weights, configuration, tokenizer, card. A file that is there with the same size is left; nothing else is
overwritten.

` + source.JobNames + `

With -o json: {"to","files":[{"name","kind","bytes","modified"}]}.`,
		Example: `  starling model pull quickstart --api http://10.0.0.7:7300 --to models/quickstart
  starling model pull quickstart --to copy`,
		Args: usage.Exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return usage.Error(cmd, errors.New("--to is needed: a folder"))
			}
			a, j, err := p.Find(cmd, args[0])
			if err != nil {
				return err
			}
			defer a.Close()
			files, err := a.Fetch(cmd.Context(), j.ID, to, []string{"model"})
			if err != nil {
				return err
			}
			return source.PrintFetched(c, to, files)
		},
	}
	p.Flags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "folder to write to; it is made if it is missing")
	return cmd
}

// provenance is where a model comes from.
type provenance struct {
	Job          string          `json:"job"` // digest of its work specification
	ID           string          `json:"id"`
	StateRoot    string          `json:"state_root"`
	Checkpoints  int             `json:"checkpoints"`
	First        *api.Checkpoint `json:"first,omitempty"`
	Last         *api.Checkpoint `json:"last,omitempty"`
	Facts        []api.Fact      `json:"facts"`
	Contributors []api.Member    `json:"contributors"`
	Audits       api.AuditCounts `json:"audits"`
	Disputes     int             `json:"disputes"`
}

func modelProvenanceCommand(c *terminal.Console) *cobra.Command {
	return source.JobCommand(c, "provenance", "Say where a model comes from: its job, its lineage, who worked on it",
		`Say where a
model comes from: the job and its data, the first and the last attested checkpoint with who signed them, who trained
and checked it and was paid for it. starling job verify computes it again.

With -o json: {"job","id","state_root","checkpoints","first":{CHECKPOINT},"last":{CHECKPOINT},"facts":[{"name","value"}],
"contributors":[MEMBER],"audits":{"drawn","passed","failed","moot","missed"},"disputes"}.`,
		`  starling model provenance quickstart
  starling model provenance out/quickstart -o json
  starling model provenance job-7f3a --network http://127.0.0.1:26601`,
		func(cmd *cobra.Command, a *source.Client, j api.Job) (p provenance, err error) {
			p = provenance{Job: j.Job, ID: j.ID, StateRoot: j.StateRoot, Facts: append([]api.Fact{}, j.Facts...),
				Contributors: []api.Member{}, Audits: j.Audits, Disputes: j.Disputes}
			lineage, err := a.Lineage(cmd.Context(), j.ID)
			if err != nil {
				return p, err
			}
			if p.Checkpoints = len(lineage); p.Checkpoints > 0 {
				p.First, p.Last = &lineage[0], &lineage[len(lineage)-1]
			}
			members, err := a.Members(cmd.Context(), j.ID)
			for _, m := range members.Members {
				if m.Role == "worker" || m.Role == "verifier" || m.Signed > 0 {
					p.Contributors = append(p.Contributors, m)
				}
			}
			return p, err
		},
		func(p provenance) terminal.Answer { return terminal.One(p, p.ID) },
		printProvenance)
}

func printProvenance(p provenance, f terminal.Form) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "job\t%s  %s\nstate root\t%s\n", p.ID, p.Job, p.StateRoot)
	for _, x := range p.Facts {
		fmt.Fprintf(w, "%s\t%s\n", strings.ToLower(x.Name), x.Value)
	}
	fmt.Fprintf(w, "lineage\t%d checkpoints", p.Checkpoints)
	if p.Last != nil {
		fmt.Fprintf(w, ", the last in %s, signed by %d", p.Last.Checkpoint, len(p.Last.Signers))
	}
	fmt.Fprintf(w, "\naudits\t%v; %d disputes\n", p.Audits, p.Disputes)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println()
	t := terminal.NewColumns(os.Stdout, f, "CONTRIBUTOR", "ROLE", "UNITS", "AUDITS", "SIGNED", "PAID")
	for _, m := range p.Contributors {
		t.Row(m.ID, m.Role, m.Units, m.Audits.Drawn, m.Signed, terminal.Zen(m.Uzen))
	}
	return t.Flush()
}

func modelChatCommand(c *terminal.Console) *cobra.Command {
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
				return usage.Error(cmd, errors.New("--tokens and --threads are at least 1, --temperature is at least 0, and --top-p "+
					"is above 0 and at most 1"))
			}
			o.Texts = 1
			e, err := serve.Open(args[0], o)
			if err != nil {
				return terminal.WithExit(&terminal.Problem{
					Code: "MODEL_UNREADABLE", What: "cannot use the model in " + args[0], Why: err.Error(),
					Fix: "give the output folder of a finished run, or a model folder in Hugging Face form",
				}, terminal.ExitNotFound)
			}
			defer e.Close()
			noteIgnored(c, args[0], e.Ignored())
			r.Model, r.Likely = e.Models()[0].Name, -1
			err = converse(cmd.Context(), c, serve.NewConversation(e, r, system), cmd.InOrStdin())
			return terminal.IfInterrupted(cmd.Context(), err, cmd.CommandPath()+" "+args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&system, "system", "", "what the model is told first")
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
