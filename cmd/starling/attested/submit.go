// Package attested is starling worker attest, which lets a worker prove what its machine is, and starling network
// attested, which lists what such proofs say and what they do not.
package attested

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/module/attested"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/confidential"
	"github.com/starling-network/starling/protocol/attestation"
	"github.com/starling-network/starling/protocol/attestation/check"
)

// Challenge is what a machine is asked to put into its report, for programs.
type Challenge struct {
	Account    string   `json:"account"`
	Peer       string   `json:"peer"`
	Block      int64    `json:"block"`
	ReportData string   `json:"report_data"`
	Report     string   `json:"report,omitempty"` // file of the report
	Collateral []string `json:"collateral,omitempty"`

	Measurement string `json:"measurement,omitempty"`
}

// options of starling worker attest.
type options struct {
	target.Target
	challenge  bool
	out        string
	report     string
	block      int64
	collateral []string
}

// Submit is starling worker attest.
func Submit(c *terminal.Console) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "attest --home DIR [--report FILE --block N --collateral FILE...]",
		Short: "Prove that the machine is a confidential one, and what runs in it",
		Long: `Attest the machine of a worker or verifier by a report of AMD SEV-SNP or a quote of Intel TDX or SGX, which
the validators verify. Jobs that list what runs in the machine (strategy.verification.attested) audit it less, and jobs
with resources.attested take no other.

Without --report the machine is asked for a report about a new block, the account of --home and its transport key, by
/sys/kernel/config/tsm/report of Linux 6.7 or later; it goes to --out, and the answer names the files of collateral to
fetch from the maker. A report made elsewhere needs the data that --challenge prints. Then the same command with
--report, --block and --collateral verifies everything here, and sends it: a block is good for 1,200 blocks. Files of
collateral are certificates and lists of revoked ones (DER or PEM), answers of Intel's service (JSON), or the JSON of
dcap-qvl.

The attestation ends when the first part of its collateral does, after a week at most, and with another transport key
or device of the worker. It does not prove that the owner has not opened the machine: starling network attested
ADDRESS says what it proves.

With -o json: {"account","peer","block","report_data","report","collateral":[ADDRESS],"measurement"}, or, with --report,
as of starling network attested ADDRESS.`,
		Example: `  starling worker attest --home net/worker-0
  starling worker attest --home net/worker-0 --challenge -o json
  starling worker attest --home net/worker-0 --report report.bin --block 1207 --collateral vcek.der \
    --collateral chain.pem --collateral crl.der`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch given := len(o.collateral) > 0 || o.block > 0; {
			case o.report == "" && given || o.report != "" && (o.challenge || o.block <= 0 || len(o.collateral) == 0):
				return usage.Error(cmd, errors.New("--report, --block and --collateral go together, without --challenge"))
			case o.report != "":
				return o.submit(cmd, c)
			}
			return o.ask(cmd, c)
		},
	}
	o.Flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.challenge, "challenge", false, "print the data for a report that is made elsewhere")
	f.StringVar(&o.out, "out", "", "file that the report of the machine goes to (default: report.bin in --home)")
	f.StringVar(&o.report, "report", "", "file of the report or quote to submit")
	f.Int64Var(&o.block, "block", 0, "block that the report is about")
	f.StringArrayVar(&o.collateral, "collateral", nil, "file of collateral of the maker (repeatable)")
	return cmd
}

const whose = "the folder of the worker or verifier"

// registered is the account of a client, with its transport key.
func registered(ctx context.Context, cl *client.Client) (peer string, err error) {
	p, err := cl.Registry.Participant(ctx, cl.Address())
	return p.PeerID, err
}

// ask makes a challenge, and a report of the machine for it.
func (o *options) ask(cmd *cobra.Command, c *terminal.Console) error {
	var ch Challenge
	err := o.Act(cmd, whose, func(ctx context.Context, cl *client.Client) error {
		peer, err := registered(ctx, cl)
		if err != nil {
			return err
		}
		height, beacon, err := cl.Registry.Beacon(ctx)
		if err != nil {
			return err
		}
		data := attestation.ReportData(attestation.Nonce(height, beacon), cl.Address(), peer)
		ch = Challenge{Account: cl.Address(), Peer: peer, Block: height, ReportData: hex.EncodeToString(data[:])}
		if o.challenge {
			return nil
		}
		return o.read(&ch, data)
	})
	if err != nil {
		return explain(err)
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(ch, ch.Account))
	}
	fmt.Printf("account      %s\ntransport    %s\nblock        %d\nreport data  %s\n", ch.Account, ch.Peer, ch.Block,
		ch.ReportData)
	if ch.Report == "" {
		return nil
	}
	fmt.Printf("report       %s\nmeasurement  %s\n\nfetch, and give each file with --collateral:\n", ch.Report,
		ch.Measurement)
	for _, from := range ch.Collateral {
		fmt.Println("  " + from)
	}
	return nil
}

// read asks the machine for its report.
func (o *options) read(ch *Challenge, data [64]byte) error {
	report, err := confidential.Machine{}.Report(data)
	if err != nil {
		return err
	}
	m, _, err := attestation.Peek(report)
	if err != nil {
		return err
	}
	if ch.Collateral, err = confidential.Sources(report); err != nil {
		return err
	}
	ch.Report, ch.Measurement = o.out, m.String()
	if ch.Report == "" {
		ch.Report = filepath.Join(o.Home, "report.bin")
	}
	return os.WriteFile(ch.Report, report, 0o600)
}

// submit verifies a quote as the chain will, and sends it.
func (o *options) submit(cmd *cobra.Command, c *terminal.Console) error {
	quote, err := os.ReadFile(o.report)
	if err != nil {
		return err
	}
	var files []confidential.File
	for _, name := range o.collateral {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files = append(files, confidential.File{Name: name, Text: text})
	}
	e, err := confidential.Evidence(quote, files)
	if err != nil {
		return explain(err)
	}
	var r attestation.Record
	err = o.Act(cmd, whose, func(ctx context.Context, cl *client.Client) error {
		if err := o.verify(ctx, cl, &e); err != nil {
			return err
		}
		quotes := attested.Client{Account: cl}
		err := quotes.Submit(ctx, o.block, e)
		if err == nil {
			r, err = quotes.Of(ctx, cl.Address())
		}
		return err
	})
	if err != nil {
		return explain(err)
	}
	return show(c, r)
}

// verify checks a quote here, so that one that the chain would refuse costs no fee.
func (o *options) verify(ctx context.Context, cl *client.Client, e *attestation.Evidence) error {
	peer, err := registered(ctx, cl)
	if err != nil {
		return err
	}
	beacon, err := cl.Ledger.Beacon(ctx, o.block)
	if err != nil {
		return err
	}
	roots, err := attested.Client{Account: cl}.Roots(ctx)
	if err != nil {
		return err
	}
	want := attestation.ReportData(attestation.Nonce(o.block, beacon), cl.Address(), peer)
	_, err = attestation.Verify(e, roots, want, func(string) (int64, error) { return 0, nil }, time.Now().Unix())
	return err
}

// explain says which check a quote does not pass, or what the machine lacks.
func explain(err error) error {
	if f, ok := errors.AsType[*check.Failure](err); ok {
		return terminal.WithExit(&terminal.Problem{Code: "QUOTE_REFUSED", What: "the quote is refused: " + f.Error(),
			Why: "every check must pass, and this one asks that " + f.Code.Text(),
			Fix: "make a new report (starling worker attest), and fetch the maker's latest collateral"},
			terminal.ExitVerification)
	}
	switch {
	case errors.Is(err, confidential.ErrNoMachine):
		return terminal.WithExit(&terminal.Problem{Code: "NOT_CONFIDENTIAL", What: err.Error(),
			Fix: "run it in a guest of AMD SEV-SNP or Intel TDX, or submit a report made elsewhere (--challenge, --report)"},
			terminal.ExitNotFound)
	case errors.Is(err, confidential.ErrCollateral):
		return terminal.WithExit(&terminal.Problem{Code: "COLLATERAL", What: err.Error(),
			Fix: "give certificates, lists of revoked ones and answers of Intel's service as they were fetched"},
			terminal.ExitUsage)
	}
	return err
}
