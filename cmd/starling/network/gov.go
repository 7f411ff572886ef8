package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/gov"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/inspect"
)

// GovCommand is starling network gov.
func GovCommand(c *terminal.Console) *cobra.Command {
	return usage.Group("gov", "See, make and vote on proposals",
		`Govern a network: its parameters, the coins of the community pool and its versions change by proposals, on
which stake votes. The validators vote with all that is delegated to them, unless who delegated it votes itself.`,
		govListCommand(c), govShowCommand(c), govParamsCommand(c), govCoinCommand(c), govProposeCommand(c),
		govDepositCommand(c), govVoteCommand(c))
}

// proposal is a client.Proposal for programs.
type proposal struct {
	ID       uint64            `json:"id"`
	Title    string            `json:"title"`
	Summary  string            `json:"summary"`
	Status   string            `json:"status"`
	Failed   string            `json:"failed,omitempty"`
	Proposer string            `json:"proposer"`
	Deposit  uint64            `json:"deposit_uzen"`
	Ends     string            `json:"ends,omitempty"`
	Messages []json.RawMessage `json:"messages"`
	Votes    map[string]string `json:"votes,omitempty"`
}

// name is what commands about it take.
func (p proposal) name() string { return strconv.FormatUint(p.ID, 10) }

func proposalOf(p gov.Proposal) proposal {
	out := proposal{ID: p.ID, Title: p.Title, Summary: p.Summary, Status: p.Status, Failed: p.Failed,
		Proposer: p.Proposer, Deposit: p.Deposit, Messages: p.Messages, Votes: p.Votes}
	if !p.Ends.IsZero() {
		out.Ends = p.Ends.UTC().Format(time.RFC3339)
	}
	return out
}

func govListCommand(c *terminal.Console) *cobra.Command {
	var network string
	var limit uint64
	cmd := &cobra.Command{
		Use:   "list --network URL",
		Short: "List proposals",
		Long: `List the proposals of a network, the latest first.

With -o json: {"proposals":[as of starling network gov show]}.`,
		Example: `  starling network gov list --network http://127.0.0.1:26601`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := target.WantNetwork(cmd, network); err != nil {
				return err
			}
			found, err := inspect.Query(cmd.Context(), network,
				func(ctx context.Context, cl *client.Client) ([]gov.Proposal, error) {
					return gov.New(cl).Proposals(ctx, max(1, limit))
				})
			if err != nil {
				return err
			}
			list := make([]proposal, len(found))
			for i, p := range found {
				list[i] = proposalOf(p)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Items("proposals", list, proposal.name))
			}
			w := terminal.NewColumns(os.Stdout, c.Form, "PROPOSAL", "STATUS", "ENDS", "DEPOSIT", "TITLE", "+PROPOSER")
			for i, p := range list {
				w.Row(p.ID, p.Status, terminal.When(found[i].Ends), terminal.Zen(p.Deposit)+" ZEN", p.Title, p.Proposer)
			}
			return w.Flush()
		},
	}
	target.NetworkFlag(cmd, &network)
	cmd.Flags().Uint64Var(&limit, "limit", 20, "most proposals that are listed")
	return cmd
}

// wantProposal reads the number of a proposal.
func wantProposal(cmd *cobra.Command, text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, usage.Error(cmd, fmt.Errorf("%q is not the number of a proposal; starling network gov list has them", text))
	}
	return id, nil
}

func govShowCommand(c *terminal.Console) *cobra.Command {
	var network string
	cmd := &cobra.Command{
		Use:   "show PROPOSAL --network URL",
		Short: "Show a proposal, what it would do, and how the votes stand",
		Long: `Show a proposal: its messages, which are executed if it passes, its deposit, and the stake that voted.

With -o json: {"id","title","summary","status","failed","proposer","deposit_uzen","ends","messages":[{"@type",...}],
"votes":{"yes","no","abstain","veto"}}, status deposit, voting, passed, rejected or failed, votes in uzen of stake.`,
		Example: `  starling network gov show 3 --network http://127.0.0.1:26601`,
		Args:    usage.Exactly("PROPOSAL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantNetwork(cmd, network); err != nil {
				return err
			}
			id, err := wantProposal(cmd, args[0])
			if err != nil {
				return err
			}
			found, err := inspect.Query(cmd.Context(), network,
				func(ctx context.Context, cl *client.Client) (gov.Proposal, error) {
					return gov.New(cl).Proposal(ctx, id)
				})
			if err != nil {
				return err
			}
			p := proposalOf(found)
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(p, p.name()))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "proposal\t%d, %s\ntitle\t%s\nsummary\t%s\nby\t%s\ndeposit\t%s ZEN\n", p.ID, p.Status, p.Title,
				p.Summary, p.Proposer, terminal.Zen(p.Deposit))
			if p.Ends != "" {
				fmt.Fprintf(w, "until\t%s\n", terminal.When(found.Ends))
			}
			if p.Failed != "" {
				fmt.Fprintf(w, "failed\t%s\n", p.Failed)
			}
			for _, option := range gov.VoteOptions() {
				fmt.Fprintf(w, "%s\t%s uzen of stake\n", option, p.Votes[option])
			}
			for _, m := range p.Messages {
				fmt.Fprintf(w, "does\t%s\n", m)
			}
			return w.Flush()
		},
	}
	target.NetworkFlag(cmd, &network)
	return cmd
}

func govParamsCommand(c *terminal.Console) *cobra.Command {
	var network string
	cmd := &cobra.Command{
		Use:   "params MODULE --network URL",
		Short: "Show the parameters of a module, as a proposal to change",
		Long: `Write the parameters of a module as the file of a proposal that would leave them as they are: change in it
what is to
be another, the title and the summary, and give it to starling network gov propose. MODULE is one of
` + strings.Join(gov.Governed(), ", ") + `.`,
		Example: `  starling network gov params market --network http://127.0.0.1:26601 > fee.json`,
		Args:    usage.Exactly("MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantNetwork(cmd, network); err != nil {
				return err
			}
			if !slices.Contains(gov.Governed(), args[0]) {
				return usage.Error(cmd, fmt.Errorf("there is no module %q with parameters; wanted one of %s", args[0],
					strings.Join(gov.Governed(), ", ")))
			}
			text, err := inspect.Query(cmd.Context(), network,
				func(ctx context.Context, cl *client.Client) ([]byte, error) { return gov.New(cl).Draft(ctx, args[0]) })
			if err != nil {
				return err
			}
			return c.PrintDocument(append(text, '\n'), args[0])
		},
	}
	target.NetworkFlag(cmd, &network)
	return cmd
}

func (v *citizen) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&v.home, "home", "", "folder of a party or of a validator, whose account acts")
	cmd.Flags().StringVar(&v.network, "network", "", "HTTP interface of a validator (default: that of the folder)")
}

func (v *citizen) dryRunFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&v.dry, "dry-run", false, "only ask whether the network would take it")
}

// act lets the account act, or try to: either gives what came of it, the second the gas that it would take.
func (v *citizen) act(cmd *cobra.Command, act func(context.Context, *client.Client) error,
	try func(context.Context, *client.Client) (uint64, error)) (gas uint64, err error) {
	if v.home == "" {
		return 0, usage.Error(cmd, errors.New("--home is needed: the folder of a party or of a validator"))
	}
	err = inspect.TransactAs(cmd.Context(), v.home, v.network, func(ctx context.Context, cl *client.Client) (err error) {
		if v.dry {
			gas, err = try(ctx, cl)
			return err
		}
		return act(ctx, cl)
	})
	return gas, err
}
