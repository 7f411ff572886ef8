package federated

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/node/federated/owner"
	"github.com/starling-network/starling/web/access"
)

func joinCommand(c *terminal.Console) *cobra.Command {
	opt := owner.Options{Say: c.Say}
	var home, known, ca, unit string
	cmd := &cobra.Command{
		Use:   "join URL --data DIR --home DIR [--base DIR] [--epsilon E --delta D --unit UNIT] [--known FILE]",
		Short: "Train on data of your own for a coordinator",
		Long: `Train on the data of a folder in the rounds of a coordinator. The data stay in this process. The patterns
of the job file are looked up below --data, and a pattern that leaves this folder is refused. The process connects to
the coordinator, and accepts no connection.

If the job starts from a base model, the owner needs a copy of its folder: at the path of the job file below --data,
or at --base. A copy with other weights or another tokenizer is refused.

In each round the owner sends one update. The update is clipped, has noise if the job asks for noise, and is hidden
under masks that cancel in the sum, or encrypted if the job has federated.updates: encrypted. --home holds the key of
the owner, its ledger, and its control variates if a job has federated.method: scaffold. The ledger lists the jobs that
the data were used for, and the last round of each job: an owner sends at most one update in a round.

--epsilon is a budget for all jobs on the data of this owner together. A job that would exceed the budget is refused
before it starts. The budget protects all data of the owner as one, or with --unit example each example by itself.

--known lists the keys of owners that you know. The owner then sends its update only in a round in which at least
federated.min_cohort of them take part. Without this list, a coordinator that invents owners can read the update.

With -o json: {"job","name","owner","examples","sent","lost","epsilon","example_epsilon","delta"}.`,
		Example: `  starling job federated join http://127.0.0.1:8766 --data hospital-1 --home owner-1
  starling job federated join https://fed.example.org:8443 --data scans --home owner \
      --epsilon 8 --delta 1e-5 --known owners.txt`,
		Args: usage.Exactly("URL"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			opt.URL = args[0]
			if opt.HTTP, err = client(opt.URL, ca); err != nil {
				return usage.Error(cmd, err)
			}
			if known != "" {
				keys, err := readKeys(known)
				if err != nil {
					return usage.Error(cmd, err)
				}
				for _, k := range keys {
					opt.Known = append(opt.Known, k)
				}
			}
			if opt.Unit = federated.Unit(unit); opt.Unit != federated.OfOwner && opt.Unit != federated.OfExample {
				return usage.Error(cmd, errors.New("--unit is owner or example"))
			}
			if opt.Epsilon < 0 || !(opt.Delta > 0 && opt.Delta < 1) {
				return usage.Error(cmd, errors.New("--epsilon is at least 0, and --delta between 0 and 1"))
			}
			if opt.Home, err = owner.OpenHome(home); err != nil {
				return explain(err)
			}
			defer func() { err = errors.Join(err, opt.Home.Close()) }()
			r, err := owner.Join(cmd.Context(), opt)
			if err != nil {
				return terminal.IfInterrupted(cmd.Context(), explain(err), cmd.CommandPath())
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(r, r.Owner))
			}
			_, err = fmt.Printf("job %s is over: %d updates sent, %d rounds without this owner\n", r.Name, r.Sent, r.Lost)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Data, "data", "", "folder of the data")
	f.StringVar(&opt.Base, "base", "", "folder of the base model (default: that of the job file, below --data)")
	f.StringVar(&home, "home", "", "folder of the key and the ledger")
	f.StringVar(&known, "known", "", "file of keys of owners that you know, one a line")
	f.StringVar(&ca, "ca", "", "certificates that sign the coordinator's, as PEM (default: those of the system)")
	f.Float64Var(&opt.Epsilon, "epsilon", 0, "budget of all jobs together; 0: none")
	f.Float64Var(&opt.Delta, "delta", owner.Delta, "delta of the budget")
	f.StringVar(&unit, "unit", string(federated.OfOwner), "what the budget protects: owner or example")
	f.DurationVar(&opt.Retry, "retry", owner.Retry, "how long a coordinator that does not answer is asked again")
	usage.ThreadsFlag(cmd, &opt.Threads)
	_, _ = cmd.MarkFlagRequired("data"), cmd.MarkFlagRequired("home") // they are flags of the command
	return cmd
}

// client is the HTTP client for a coordinator. Beyond the loopback it takes https alone.
func client(address, ca string) (*http.Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	loopback, err := access.Loopback(net.JoinHostPort(u.Hostname(), u.Port()))
	if err != nil || u.Scheme != "https" && !(u.Scheme == "http" && loopback) {
		return nil, fmt.Errorf("%q is no https address, nor http on this machine", address)
	}
	t := &tls.Config{MinVersion: tls.VersionTLS13}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		if t.RootCAs = x509.NewCertPool(); !t.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate", ca)
		}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: t, Proxy: http.ProxyFromEnvironment,
		ResponseHeaderTimeout: time.Minute}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}, nil
}

// spent is an epsilon for people.
func spent(epsilon *float64, delta float64) string {
	if epsilon == nil {
		return "unbounded: a job had no noise that protects it"
	}
	return fmt.Sprintf("%.3f at delta %g", *epsilon, delta)
}

func ledgerCommand(c *terminal.Console) *cobra.Command {
	var home string
	delta := owner.Delta
	cmd := &cobra.Command{
		Use:   "ledger --home DIR [--delta D]",
		Short: "Show the key of an owner, and what its data were used for",
		Long: `Show the public key of an owner, the jobs that its data were used for, and the epsilon of all these jobs
together: one for all data of the owner, and one for a single example. If a job had no noise for one of the two, that
epsilon is unbounded. If the folder has no key, the command makes one.

With -o json: {"owner","epsilon","example_epsilon","delta","jobs":[{"job","name","noise","rounds","example_noise",
"rate","steps","last"}]}.`,
		Example: `  starling job federated ledger --home owner-1`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			h, err := owner.OpenHome(home)
			if err != nil {
				return explain(err)
			}
			defer func() { err = errors.Join(err, h.Close()) }()
			all := struct {
				Owner   string       `json:"owner"`
				Epsilon *float64     `json:"epsilon"`
				Example *float64     `json:"example_epsilon"`
				Delta   float64      `json:"delta"`
				Jobs    []*owner.Use `json:"jobs"`
			}{Owner: h.Name(), Delta: delta, Jobs: append([]*owner.Use{}, h.Ledger.Jobs...)}
			all.Epsilon, all.Example = h.Bounds(delta)
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(all, all.Owner))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "owner\t%s\nepsilon\t%s\n  of an example\t%s\n", all.Owner, spent(all.Epsilon, delta),
				spent(all.Example, delta))
			for _, u := range all.Jobs {
				fmt.Fprintf(w, "%.12s\t%s\tnoise %g\tfor examples %g\t%d rounds\n", u.Job, u.Name, u.Noise, u.ExampleNoise,
					u.Rounds)
			}
			return w.Flush()
		},
	}
	cmd.Flags().StringVar(&home, "home", "", "folder of the key and the ledger")
	cmd.Flags().Float64Var(&delta, "delta", delta, "delta at which epsilon is stated")
	_ = cmd.MarkFlagRequired("home") // it is a flag of the command
	return cmd
}
