// Package arena has the commands of contests of models: those that host, enter, reveal, judge and show them. The rules
// are those of protocol/arena, and the parties are in node/arena.
package arena

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	module "github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	nodearena "github.com/starling-network/starling/node/arena"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/coin"
)

// Command is starling market arena.
func Command(c *terminal.Console) *cobra.Command {
	return usage.Group("arena", "Contests of models on a hidden set, with a prize",
		`Host a contest of models with a prize, enter a model, and judge contests for fees. A host commits to a hidden set
before models are entered, and publishes it after that; models are entered by commitments, and published with the set.
Evaluators that the network draws compute the exact loss of each model on each example, find copies, and compare models
by paired bootstrap duels whose seed is drawn after their results are sealed. docs/market.md has the rules.`,
		createCommand(c), enterCommand(c), revealCommand(c), judgeCommand(c), listCommand(c), showCommand(c),
		scoreCommand(c), retireCommand(c))
}

// dirs are the folders of the parties in the folder of an account.
func dirs(home string, more ...string) string {
	return filepath.Join(append([]string{home, "arena"}, more...)...)
}

// explain explains the errors of node/arena.
func explain(err error) error {
	return cause.Step(err, map[string]int{nodearena.BadFolder: terminal.ExitNotFound,
		nodearena.HasCode: terminal.ExitVerification, nodearena.Changed: terminal.ExitConflict,
		nodearena.Unknown: terminal.ExitNotFound, nodearena.OtherTokens: terminal.ExitConflict,
		nodearena.BadText: terminal.ExitUsage, nodearena.Disk: terminal.ExitFailure})
}

// wantContest reads the number of a contest.
func wantContest(cmd *cobra.Command, text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id == 0 {
		return 0, usage.Error(cmd, fmt.Errorf("%q is no number of a contest; starling market arena list lists them", text))
	}
	return id, nil
}

// Listed is a contest for programs.
type Listed struct {
	Contest  uint64 `json:"contest"`
	Title    string `json:"title"`
	Host     string `json:"host"`
	Coin     string `json:"coin"`
	Prize    string `json:"prize"` // in coins
	Bond     string `json:"bond"`
	Deposit  string `json:"deposit"`
	Fee      string `json:"fee"`
	Curve    string `json:"curve"`
	Places   uint32 `json:"places"`
	Examples uint32 `json:"examples"`
	Vocab    uint32 `json:"vocab"`
	Length   uint32 `json:"length"`
	MaxBytes uint64 `json:"max_bytes"`
	Entries  uint32 `json:"entries"`
	Most     uint32 `json:"most_entries"`
	Phase    string `json:"phase"`
	Until    int64  `json:"until"`
	Why      string `json:"why,omitempty"`
	Base     string `json:"base,omitempty"`
	BaseURL  string `json:"base_url,omitempty"`

	Tokenizer string `json:"tokenizer"` // SHA-256 of tokenizer.json
	About     string `json:"about,omitempty"`
}

func listed(c arena.Contest, in coin.Registered) Listed {
	t := c.Terms
	l := Listed{Contest: c.ID, Title: t.Title, Host: c.Host, Coin: in.Name(), Prize: in.Amount(t.Prize),
		Bond: in.Amount(t.Bond), Deposit: in.Amount(t.Deposit), Fee: in.Amount(t.Fee), Curve: t.Curve.String(),
		Places: t.Places, Examples: t.Examples, Vocab: t.Vocab, Length: t.Length, MaxBytes: t.MaxBytes, Entries: c.Entries,
		Most: t.Most, Phase: string(c.Phase), Until: c.Until, Why: string(c.Why), BaseURL: t.BaseURL,
		Tokenizer: t.Tokenizer.String(), About: t.About}
	if !t.Base.IsZero() {
		l.Base = t.Base.String()
	}
	return l
}

func listCommand(c *terminal.Console) *cobra.Command {
	var all bool
	cmd := target.ListCommand(c, "list", "List the contests of a network",
		`List the contests that are under way on a network, the latest first. UNTIL is the last block of the phase.

With -o json: {"contests":[{"contest","title","host","coin","prize","bond","deposit","fee","curve","places","examples",
"vocab","length","max_bytes","entries","most_entries","phase","until","why","base","base_url","tokenizer",
"about"}]}.`,
		`  starling market arena list --network http://127.0.0.1:26601`, "contests",
		func(ctx context.Context, t *target.Target) ([]Listed, error) {
			return inspect.Query(ctx, t.Network, func(ctx context.Context, cl *client.Client) ([]Listed, error) {
				coins, err := cl.Market.ByDenom(ctx)
				if err != nil {
					return nil, err
				}
				contests, err := cl.Arena.Contests(ctx, all)
				list := []Listed{}
				for _, c := range contests {
					list = append(list, listed(c, coins[c.Terms.Denom]))
				}
				return list, err
			})
		},
		func(l Listed) string { return fmt.Sprint(l.Contest) },
		[]string{"CONTEST", "TITLE", "PRIZE", "DEPOSIT", "ENTRIES", "PHASE", "UNTIL", "+HOST", "+CURVE", "+EXAMPLES"},
		func(l Listed) []any {
			return []any{l.Contest, l.Title, l.Prize + " " + l.Coin, l.Deposit, fmt.Sprintf("%d of %d", l.Entries, l.Most),
				l.Phase, l.Until, l.Host, l.Curve, l.Examples}
		})
	cmd.Flags().BoolVar(&all, "all", false, "also contests that are over")
	return cmd
}

// Entered is an entry of a contest for programs.
type Entered struct {
	Entry   uint32 `json:"entry"`
	Account string `json:"account"`
	Height  int64  `json:"height"`
	Model   string `json:"model,omitempty"`
	URL     string `json:"url,omitempty"`

	Status string  `json:"status,omitempty"` // of the report of the majority
	Of     *uint32 `json:"copy_of,omitempty"`
	Loss   float64 `json:"loss,omitempty"` // mean, in nats a token
	Place  uint32  `json:"place,omitempty"`
	Prize  string  `json:"prize,omitempty"`
}

// Paid is a payment at the end of a contest for programs.
type Paid struct {
	To     string `json:"to"` // "": the community pool
	Amount string `json:"amount"`
	For    string `json:"for"`
}

// Shown is a contest with its entries for programs.
type Shown struct {
	Listed
	Panel    []string  `json:"panel"`
	Entries  []Entered `json:"models"`
	Payments []Paid    `json:"payments"`
}

func shown(s module.Standing, in coin.Registered) Shown {
	v := Shown{Listed: listed(s.Contest, in), Panel: append([]string{}, s.Panel...), Entries: []Entered{},
		Payments: []Paid{}}
	var report arena.Report
	for _, o := range s.Opinions {
		if o.Report != nil && o.Report.Digest() == s.Report {
			report = *o.Report
		}
	}
	shares := s.Terms.Shares(s.Terms.Prize, report.Ranking())
	for i, e := range s.All {
		x := Entered{Entry: e.Number, Account: e.Account, Height: e.Height, URL: e.URL}
		if !e.Model.IsZero() {
			x.Model = e.Model.String()
		}
		if i < len(report.Entries) {
			j := report.Entries[i]
			x.Status, x.Loss, x.Place = j.Status.String(), float64(j.Mean)/arena.Unit, j.Group
			if j.Status == arena.Copy {
				x.Of = &j.Of
			}
		}
		for k, r := range report.Ranking() {
			if r.Number == e.Number {
				x.Prize = in.Amount(shares[k])
			}
		}
		v.Entries = append(v.Entries, x)
	}
	for _, p := range s.Payments {
		v.Payments = append(v.Payments, Paid{p.To, in.Amount(p.Amount), string(p.For)})
	}
	return v
}

func showCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "show CONTEST --network URL",
		Short: "Show a contest, its entries, their places and what was paid",
		Long: `Show a contest: its phase, its entries, and once it is over their mean losses, their places and what was paid.
Entries that no duel tells apart have the same place, and share the prizes of their places.

With -o json: what starling market arena list prints of it, and {"panel",
"models":[{"entry","account","height","model","url","status","copy_of","loss","place","prize"}],
"payments":[{"to","amount","for"}]}.`,
		Example: `  starling market arena show 3 --network http://127.0.0.1:26601`,
		Args:    usage.Exactly("CONTEST"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantContest(cmd, args[0])
			if err != nil {
				return err
			}
			if err := t.Settle(cmd); err != nil {
				return err
			}
			v, err := inspect.Query(cmd.Context(), t.Network, func(ctx context.Context, cl *client.Client) (Shown, error) {
				return ask(ctx, cl, id)
			})
			if err != nil {
				return err
			}
			return show(c, v)
		},
	}
	t.Flags(cmd)
	return cmd
}

func ask(ctx context.Context, cl *client.Client, id uint64) (Shown, error) {
	s, err := cl.Arena.Contest(ctx, id)
	if err != nil {
		return Shown{}, err
	}
	in, err := cl.Market.Coin(ctx, s.Terms.Denom)
	return shown(s, in), err
}

func show(c *terminal.Console, v Shown) error {
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(v, fmt.Sprint(v.Contest)))
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "contest %d\t%s\nprize\t%s %s, %s over %d places\n", v.Contest, terminal.Printable(v.Title), v.Prize,
		v.Coin, v.Curve, v.Places)
	fmt.Fprintf(w, "hidden set\t%d examples of at most %d tokens below %d\n", v.Examples, v.Length, v.Vocab)
	fmt.Fprintf(w, "tokenizer\t%s\n", v.Tokenizer)
	if v.About != "" {
		fmt.Fprintf(w, "about\t%s\n", terminal.Printable(v.About))
	}
	phase := fmt.Sprintf("%s, until block %d", v.Phase, v.Until)
	if v.Phase == string(arena.Paid) || v.Phase == string(arena.Void) {
		phase = v.Phase
	}
	if v.Why != "" {
		phase += ": " + v.Why
	}
	fmt.Fprintf(w, "phase\t%s\n", phase)
	if err := w.Flush(); err != nil || len(v.Entries) == 0 {
		return err
	}
	t := terminal.NewColumns(os.Stdout, c.Form, "ENTRY", "ACCOUNT", "STATUS", "LOSS", "PLACE", "PRIZE")
	for _, e := range v.Entries {
		status, loss, place := e.Status, "", ""
		switch {
		case e.Of != nil && *e.Of == 0:
			status = "copy of the base"
		case e.Of != nil:
			status = fmt.Sprintf("copy of %d", *e.Of)
		case status == "" && e.Model != "":
			status = "revealed"
		case status == "":
			status = "entered"
		}
		if e.Loss > 0 {
			loss = fmt.Sprintf("%.4f", e.Loss)
		}
		if e.Place > 0 {
			place = fmt.Sprint(e.Place)
		}
		t.Row(e.Entry, e.Account, status, loss, place, e.Prize)
	}
	return t.Flush()
}
