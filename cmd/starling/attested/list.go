package attested

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/module/attested"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/attestation"
)

// Attested is an attestation, for programs.
type Attested struct {
	Account     string   `json:"account"`
	Peer        string   `json:"peer"`
	Measurement string   `json:"measurement"`
	Platform    string   `json:"platform"`
	LevelDate   string   `json:"level_date,omitempty"` // of the security level of the platform, as Intel dates it
	Height      int64    `json:"height"`
	At          string   `json:"at"`
	Until       string   `json:"until"`
	Quote       string   `json:"quote_sha256"`
	Checks      []passed `json:"checks,omitempty"`
	NotProven   []string `json:"not_proven,omitempty"`
}

// passed is a check, and the dates between which it holds; none: no date limits it.
type passed struct {
	Code  string `json:"code"`
	Text  string `json:"text"`
	From  string `json:"from,omitempty"`
	Until string `json:"until,omitempty"`
}

// notProven is what no quote proves.
var notProven = []string{
	"that the owner of the machine has not read or changed its memory: devices between processor and memory that cost " +
		"less than 1,000 dollars break SEV-SNP, TDX and SGX (TEE.fail, 2025)",
	"that the software with this measurement is right: the job lists it, and its author answers for it",
	"that a GPU in the machine is a confidential one",
	"that the machine does the work itself: its units are audited, if less often",
	"that the platform is free of flaws found after the dates below",
}

func attestedOf(r attestation.Record) Attested {
	a := Attested{Account: r.ID, Peer: r.Peer, Measurement: r.Measurement, Platform: r.Platform,
		LevelDate: date(r.LevelDate), Height: r.Height, At: date(r.At), Until: date(r.Until), Quote: r.Quote.String()}
	for _, p := range r.Passed {
		a.Checks = append(a.Checks, passed{string(p.Code), p.Code.Text(), date(p.From), date(p.Until)})
	}
	a.NotProven = notProven
	return a
}

func date(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}

// List is starling network attested.
func List(c *terminal.Console) *cobra.Command {
	var network string
	cmd := &cobra.Command{
		Use:   "attested [ADDRESS] --network URL",
		Short: "List attested machines, or each check of one and what it does not prove",
		Long: `List the workers and verifiers whose machines are attested by a quote of AMD SEV-SNP, Intel TDX or SGX
(starling worker attest), with the measurement of their software and the time at which each attestation ends. With an
address, show each check that the quote passed, the dates between which it holds, and what the quote does not prove.

With -o json: {"attested":[{"account","peer","measurement","platform","level_date","height","at","until",
"quote_sha256"}]}; with an address one of them, and "checks":[{"code","text","from","until"}],"not_proven":[TEXT].`,
		Example: `  starling network attested --network http://127.0.0.1:26601
  starling network attested starling1qx... --network http://127.0.0.1:26601 -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage.Error(cmd, fmt.Errorf("%d arguments given, wanted at most one address", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantNetwork(cmd, network); err != nil {
				return err
			}
			if len(args) == 1 {
				return one(cmd.Context(), c, network, args[0])
			}
			all, err := inspect.Query(cmd.Context(), network,
				func(ctx context.Context, cl *client.Client) ([]attestation.Record, error) {
					return attested.Client{Account: cl}.All(ctx)
				})
			if err != nil {
				return err
			}
			var list []Attested
			for _, r := range all {
				a := attestedOf(r)
				a.Checks, a.NotProven = nil, nil
				list = append(list, a)
			}
			return terminal.PrintList(c.Form, "attested", list, func(a Attested) string { return a.Account },
				[]string{"ACCOUNT", "MEASUREMENT", "PLATFORM", "UNTIL", "+LEVEL OF", "+SINCE HEIGHT", "+TRANSPORT"},
				func(a Attested) []any {
					return []any{a.Account, short(a.Measurement), a.Platform, a.Until, a.LevelDate, a.Height, a.Peer}
				})
		},
	}
	target.NetworkFlag(cmd, &network)
	return cmd
}

// short is the beginning of a measurement, for tables.
func short(measurement string) string { return measurement[:min(len(measurement), 24)] }

func one(ctx context.Context, c *terminal.Console, network, address string) error {
	if err := target.WantAddress(address); err != nil {
		return err
	}
	r, err := inspect.Query(ctx, network, func(ctx context.Context, cl *client.Client) (attestation.Record, error) {
		return attested.Client{Account: cl}.Of(ctx, address)
	})
	if errors.Is(err, query.ErrNotFound) {
		return terminal.WithExit(&terminal.Problem{Code: "NOT_ATTESTED",
			What: "the machine of " + address + " is not attested",
			Fix:  "its owner attests it with starling worker attest, and again before it ends"}, terminal.ExitNotFound)
	}
	if err != nil {
		return err
	}
	return show(c, r)
}

// show prints an attestation.
func show(c *terminal.Console, r attestation.Record) error {
	a := attestedOf(r)
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(a, a.Account))
	}
	fmt.Printf("account      %s\ntransport    %s\nmeasurement  %s\nplatform     %s\naccepted     %s, height %d\n"+
		"until        %s\n\n", a.Account, a.Peer, a.Measurement, a.Platform, a.At, a.Height, a.Until)
	w := terminal.NewColumns(os.Stdout, c.Form, "CHECK", "WHAT HOLDS", "FROM", "UNTIL")
	for _, p := range a.Checks {
		w.Row(p.Code, p.Text, p.From, p.Until)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println("\nnot proven:")
	for _, text := range a.NotProven {
		fmt.Println("- " + text)
	}
	return nil
}
