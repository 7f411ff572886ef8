package apply

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/accused"
	"github.com/starling-network/starling/node/checked"
)

// Decided is an accusation that is over, for programs.
type Decided struct {
	Accusation uint64 `json:"accusation"`
	Provider   string `json:"provider"`
	Token      uint32 `json:"token"`
	Convicted  bool   `json:"convicted"`
}

// Accuse is starling model accuse.
func Accuse(c *terminal.Console) *cobra.Command {
	var t target.Target
	var threads int
	var adapter string
	cmd := &cobra.Command{
		Use:   "accuse MODEL FILE --home DIR",
		Short: "Accuse wrong answers of a hosted model on its network",
		Long: `Check the receipts in FILE, as starling model check --receipts does, and accuse the providers of wrong
answers. An accusation locks the least bond of the network (min_bond), doubled for each open accusation of the provider.
The provider shows its own execution, with 300 blocks for a move, or loses by silence; the command makes the moves of
the accuser until the network has decided. A convicted provider loses its bond: the accuser has half of it, and its own
back; the community pool has the other half. An accuser that is wrong loses its bond, half to the provider and half to
the community pool, so that right answers are not accused. A line that is no receipt of this model, or that the network
refuses, is named on standard error, and the others are accused. The same command continues after an interruption.

With -o json: {"accusations":[{"accusation","provider","token","convicted"}]}.`,
		Example: `  starling model accuse out/quickstart receipts.jsonl --home net/consumer
  starling model accuse out/base receipts.jsonl --adapter out/tuned/adapter --home net/consumer
  starling model accuse out/quickstart receipts.jsonl --home net/consumer -o json`,
		Args: usage.Exactly("MODEL", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, file, err := inputs(args)
			if err != nil {
				return err
			}
			defer file.Close()
			m, err := checkable(args[0], of, adapter)
			if err != nil {
				return err
			}
			over := []Decided{}
			err = t.Act(cmd, "the folder of the account that accuses", func(ctx context.Context, cl *client.Client) error {
				p := &accused.Party{Account: cl.Address(), Model: m, Threads: threads, Network: cl.Hosting}
				next, err := client.Heights(ctx, cl)
				if err != nil {
					return err
				}
				ids, err := accuseAll(ctx, p, file, func(line int, err error) { say(c, fmt.Sprint("line ", line), err) })
				if err != nil && ctx.Err() == nil {
					return answersError(args[1], err)
				}
				all, err := p.Play(ctx, ids, next, func(id uint64, err error) { say(c, fmt.Sprint("accusation ", id), err) })
				for _, a := range all {
					over = append(over, Decided{a.ID, a.Provider, a.From, a.Convicted()})
				}
				return err
			})
			if err != nil {
				return err
			}
			return terminal.PrintList(c.Form, "accusations", over,
				func(d Decided) string { return strconv.FormatUint(d.Accusation, 10) },
				[]string{"ACCUSATION", "PROVIDER", "TOKEN", "CONVICTED"},
				func(d Decided) []any { return []any{d.Accusation, d.Provider, d.Token, d.Convicted} })
		},
	}
	t.Flags(cmd)
	adapterFlag(cmd, &adapter)
	usage.ThreadsFlag(cmd, &threads)
	return cmd
}

// say prints an error that does not end the command.
func say(c *terminal.Console, about string, err error) {
	if !c.Quiet {
		fmt.Fprintf(os.Stderr, "%s: %v\n", about, err)
	}
}

// accuseAll accuses the wrong answers among the receipts of a file, a line each, and returns the numbers of the
// accusations. failed is given the error of a line, which hides no other; the last is returned if no line was accused.
func accuseAll(ctx context.Context, p *accused.Party, file io.Reader, failed func(line int, err error)) (ids []uint64,
	last error) {
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxAnswerBytes)
	for n := 1; lines.Scan(); n++ {
		s, err := checked.ReadReceipt(lines.Bytes())
		var id uint64
		if err == nil {
			id, err = p.Accuse(ctx, s)
		}
		switch {
		case ctx.Err() != nil:
			return ids, ctx.Err()
		case err == nil:
			ids = append(ids, id)
		case !errors.Is(err, accused.ErrRight):
			failed(n, err)
			last = err
		}
	}
	if err := lines.Err(); err != nil || len(ids) > 0 {
		return ids, err
	}
	return ids, last
}

// Defend is starling model defend.
func Defend(c *terminal.Console) *cobra.Command {
	var t target.Target
	var threads int
	var adapter string
	cmd := &cobra.Command{
		Use:   "defend MODEL --home DIR",
		Short: "Answer accusations of a provider until it is interrupted",
		Long: `Make the moves of a provider in all accusations of its answers, with each block: a provider that makes none
within 300 blocks loses its bond, whatever it answered. MODEL is the folder that the answers were written with. Run the
command as long as the account hosts the model, and until its bond is back. It continues after an interruption.`,
		Example: `  starling model defend out/quickstart --home net/worker-1`,
		Args:    usage.Exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := loaded(args[0])
			if err != nil {
				return err
			}
			m, err := checkable(args[0], of, adapter)
			if err != nil {
				return err
			}
			whose := "the folder of the account of the provider"
			err = t.Act(cmd, whose, func(ctx context.Context, cl *client.Client) error {
				return defence(ctx, cl, m, threads,
					func(id uint64, err error) { say(c, fmt.Sprint("accusation ", id), err) })
			})
			return terminal.IfInterrupted(cmd.Context(), err, "")
		},
	}
	t.Flags(cmd)
	adapterFlag(cmd, &adapter)
	usage.ThreadsFlag(cmd, &threads)
	return cmd
}

// defence answers the accusations of an account until the context ends.
func defence(ctx context.Context, cl *client.Client, m *checked.Model, threads int,
	failed func(id uint64, err error)) error {
	p := &accused.Party{Account: cl.Address(), Model: m, Threads: threads, Network: cl.Hosting}
	next, err := client.Heights(ctx, cl)
	if err != nil {
		return err
	}
	return p.Defend(ctx, next, failed)
}
