package model

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/source"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
)

func listCommand(c *terminal.Console) *cobra.Command {
	var p source.Place
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the models that finished runs left",
		Long: `List the models that the finished runs of a folder or of a server left, the latest first.

With -o json: {"models":[{"id","name","state_root","eval_loss","steps","tokens","rounds","signers",` +
			`"facts","files":[{"name",
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

func provenanceCommand(c *terminal.Console) *cobra.Command {
	return source.JobCommand(c, "provenance", "Say where a model comes from: its job, its lineage, who worked on it",
		`Say where a
model comes from: the job and its data, the first and the last attested checkpoint with their signers, who trained
and checked it and was paid for it. starling job verify computes it again.

With -o json: {"job","id","state_root","checkpoints","first":{CHECKPOINT},"last":{CHECKPOINT},`+
			`"facts":[{"name","value"}],
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
				if m.Role == "worker" || m.Role == "generator" || m.Role == "verifier" || m.Signed > 0 {
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
		t.Row(m.ID, m.Role, m.Units, m.Audits.Drawn, m.Signed, terminal.Amount(api.CoinOf(m.Coin), m.Uzen))
	}
	return t.Flush()
}
