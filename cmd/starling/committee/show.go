package committee

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	module "github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/coin"
	rules "github.com/starling-network/starling/protocol/committee"
)

// Listed is a committee for programs.
type Listed struct {
	Committee uint64 `json:"committee"`
	Title     string `json:"title"`
	Host      string `json:"host"`
	Coin      string `json:"coin"`
	Pay       string `json:"pay"` // of a round, in coins
	Fee       string `json:"fee"`
	Bond      string `json:"bond"`
	Left      string `json:"left"`  // that the network holds of the host
	Stake     string `json:"stake"` // of a member, in ZEN
	Rounds    uint32 `json:"rounds"`
	Begun     uint32 `json:"begun"`
	Scored    uint32 `json:"scored"`
	Members   uint32 `json:"members"`
	Drawn     uint32 `json:"drawn"`
	Panel     uint32 `json:"evaluators"`
	Window    uint32 `json:"window"`
	Phase     string `json:"phase"`
	Contest   uint64 `json:"contest"` // the latest round
	Why       string `json:"why,omitempty"`
	Job       string `json:"job"`
	URL       string `json:"url"` // where the job is
}

func listed(c rules.Committee, in coin.Registered) Listed {
	t := c.Terms
	return Listed{Committee: c.ID, Title: t.Round.Title, Host: c.Host, Coin: in.Name(), Pay: in.Amount(t.Pay),
		Fee: in.Amount(t.Round.Fee), Bond: in.Amount(t.Round.Bond), Left: in.Amount(c.Left),
		Stake: coin.Coin{}.Amount(t.Stake), Rounds: t.Rounds, Begun: c.Begun, Scored: c.Scored, Members: c.Members,
		Drawn: t.Drawn, Panel: t.Round.Panel, Window: t.Window, Phase: string(c.Phase), Contest: c.Contest,
		Why: string(c.Why), Job: t.Job.String(), URL: t.Round.About}
}

func listCommand(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "list", "List the committees of a network",
		`List the committees of a network, the latest first, also those that are over.

With -o json: {"committees":[{"committee","title","host","coin","pay","fee","bond","left","stake","rounds","begun",
"scored","members","drawn","evaluators","window","phase","contest","why","job","url"}]}.`,
		`  starling market committee list --network http://127.0.0.1:26601`, "committees",
		func(ctx context.Context, t *target.Target) ([]Listed, error) {
			return inspect.Query(ctx, t.Network, func(ctx context.Context, cl *client.Client) ([]Listed, error) {
				coins, err := cl.Market.ByDenom(ctx)
				if err != nil {
					return nil, err
				}
				all, err := cl.Arena.Committees(ctx)
				list := []Listed{}
				for _, c := range all {
					list = append(list, listed(c, coins[c.Terms.Round.Denom]))
				}
				return list, err
			})
		},
		func(l Listed) string { return fmt.Sprint(l.Committee) },
		[]string{"COMMITTEE", "TITLE", "PAY", "STAKE", "MEMBERS", "ROUNDS", "PHASE", "+HOST", "+URL"},
		func(l Listed) []any {
			return []any{l.Committee, l.Title, l.Pay + " " + l.Coin, l.Stake, l.Members,
				fmt.Sprintf("%d of %d", l.Begun, l.Rounds), l.Phase, l.Host, l.URL}
		})
}

// Member is a member for programs.
type Member struct {
	Account string   `json:"account"`
	Stake   string   `json:"stake"`
	Ready   bool     `json:"ready"`
	Drawn   uint32   `json:"drawn"`
	Paid    string   `json:"paid"`
	Scores  []uint64 `json:"scores"` // of its last rounds, in millionths
	Rating  uint64   `json:"rating"` // the median of them
}

// Outcome is what a member has for a round.
type Outcome struct {
	Account string  `json:"account"`
	Entry   uint32  `json:"entry,omitempty"`
	Gain    float64 `json:"gain"` // nats
	Score   uint64  `json:"score"`
	Rating  uint64  `json:"rating"`
	Paid    string  `json:"paid"`
	Lost    string  `json:"lost,omitempty"` // ZEN of the stake
	Why     string  `json:"why,omitempty"`  // that nothing is paid
}

// Shown is a committee with its members, and the outcomes of a round.
type Shown struct {
	Listed
	All      []Member  `json:"all"`
	Round    uint64    `json:"round"` // contest whose outcomes follow; 0: none is over
	Outcomes []Outcome `json:"outcomes"`
}

func shown(a module.Assembly, r arena.Contest, in coin.Registered) Shown {
	v := Shown{Listed: listed(a.Committee, in), All: []Member{}, Outcomes: []Outcome{}}
	for _, m := range a.All {
		v.All = append(v.All, Member{m.Account, coin.Coin{}.Amount(m.Stake), m.Ready, m.Drawn, in.Amount(m.Paid),
			append([]uint64{}, m.Scores...), m.Rating()})
	}
	if len(r.Outcomes) > 0 {
		v.Round = r.ID
	}
	for _, o := range r.Outcomes {
		x := Outcome{Account: o.Account, Entry: o.Entry, Gain: float64(o.Gain) / arena.Unit, Score: o.Score,
			Rating: o.Rating, Paid: in.Amount(o.Paid), Why: string(o.Why)}
		if o.Lost > 0 {
			x.Lost = coin.Coin{}.Amount(o.Lost)
		}
		v.Outcomes = append(v.Outcomes, x)
	}
	return v
}

func showCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var contest uint64
	cmd := &cobra.Command{
		Use:   "show COMMITTEE --network URL [--contest NUMBER]",
		Short: "Show a committee, its members, and what a round paid or why it paid nothing",
		Long: `Show a committee with its members, and the outcomes of its latest round, or of that which --contest names:
of each member its gain (the loss of the model of the round less the loss after a step towards its own), its score in
millionths of the largest gain of the round, the median of its last scores, and its pay, or the reason why it is paid
nothing. starling market arena show shows the models of the round.

With -o json: what starling market committee list prints of it, and {"all":[{"account","stake","ready","drawn","paid",
"scores","rating"}],"round","outcomes":[{"account","entry","gain","score","rating","paid","lost","why"}]}.`,
		Example: `  starling market committee show 2 --network http://127.0.0.1:26601`,
		Args:    usage.Exactly("COMMITTEE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantCommittee(cmd, args[0])
			if err != nil {
				return err
			}
			if err := t.Settle(cmd); err != nil {
				return err
			}
			v, err := inspect.Query(cmd.Context(), t.Network, func(ctx context.Context, cl *client.Client) (Shown, error) {
				return ask(ctx, cl, id, contest)
			})
			if err != nil {
				return err
			}
			return show(c, v)
		},
	}
	t.Flags(cmd)
	cmd.Flags().Uint64Var(&contest, "contest", 0, "the round to show (default: the latest that is over)")
	return cmd
}

// ask asks for a committee, with a round that is over: the latest one, or that of a number.
func ask(ctx context.Context, cl *client.Client, id, contest uint64) (Shown, error) {
	a, err := cl.Arena.Committee(ctx, id)
	if err != nil {
		return Shown{}, err
	}
	in, err := cl.Market.Coin(ctx, a.Terms.Round.Denom)
	if err != nil {
		return Shown{}, err
	}
	var r arena.Contest
	switch {
	case contest > 0:
		s, err := cl.Arena.Contest(ctx, contest)
		if err != nil {
			return Shown{}, err
		}
		if s.Committee != id {
			return Shown{}, elsewhere(s.Contest, id)
		}
		r = s.Contest
	case a.Contest > 0:
		s, err := cl.Arena.Contest(ctx, a.Contest)
		if err != nil {
			return Shown{}, err
		}
		r = s.Contest
	}
	return shown(a, r, in), nil
}

// elsewhere is the error about a contest that is no round of a committee.
func elsewhere(r arena.Contest, id uint64) error {
	p := &terminal.Problem{Code: "COMMITTEE_CONTEST",
		What: fmt.Sprintf("contest %d is no round of committee %d", r.ID, id),
		Why:  fmt.Sprintf("it is a round of committee %d", r.Committee),
		Fix:  fmt.Sprintf("starling market committee show %d --contest %d", r.Committee, r.ID)}
	if r.Committee == 0 {
		p.Why = "it is a contest with a prize, of no committee"
		p.Fix = fmt.Sprintf("starling market arena show %d", r.ID)
	}
	return terminal.WithExit(p, terminal.ExitNotFound)
}

func show(c *terminal.Console, v Shown) error {
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(v, fmt.Sprint(v.Committee)))
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "committee %d\t%s\npay\t%s %s a round, a fee of %s for each evaluator\n", v.Committee,
		terminal.Printable(v.Title), v.Pay, v.Coin, v.Fee)
	fmt.Fprintf(w, "rounds\t%d of %d, of which %d have scores\n", v.Begun, v.Rounds, v.Scored)
	phase := v.Phase
	if v.Why != "" {
		phase += ": " + v.Why
	}
	fmt.Fprintf(w, "phase\t%s\njob\t%s\n", phase, terminal.Printable(v.URL))
	if err := w.Flush(); err != nil {
		return err
	}
	m := terminal.NewColumns(os.Stdout, c.Form, "MEMBER", "STAKE", "READY", "DRAWN", "RATING", "PAID")
	for _, x := range v.All {
		m.Row(x.Account, x.Stake, x.Ready, x.Drawn, x.Rating, x.Paid)
	}
	if err := m.Flush(); err != nil || v.Round == 0 {
		return err
	}
	fmt.Printf("contest %d\n", v.Round)
	o := terminal.NewColumns(os.Stdout, c.Form, "MEMBER", "ENTRY", "GAIN", "SCORE", "RATING", "PAID", "LOST", "WHY")
	for _, x := range v.Outcomes {
		o.Row(x.Account, x.Entry, fmt.Sprintf("%.4f", x.Gain), x.Score, x.Rating, x.Paid, x.Lost, x.Why)
	}
	return o.Flush()
}
