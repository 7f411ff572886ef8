package network

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/validators"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/dashboard"
)

func peersCommand(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "peers", "List the validators that a validator is connected to",
		`List the processes of other
validators that the validator which is asked is connected to. starling worker status lists the peers of a worker.

With -o json: {"peers":[{"node_id","name","address","dialled","sent_bytes","received_bytes"}]}.`,
		`  starling network peers --network http://127.0.0.1:26601`,
		"peers", func(ctx context.Context, t *target.Target) ([]validators.Peer, error) {
			return dashboard.NetworkPeers(ctx, t.Network)
		},
		func(p validators.Peer) string { return p.NodeID },
		[]string{"NODE", "NAME", "ADDRESS", "DIALLED", "SENT", "RECEIVED"},
		func(p validators.Peer) []any {
			return []any{p.NodeID, p.Name, p.Address, p.Dialled, terminal.Bytes(uint64(p.Sent)),
				terminal.Bytes(uint64(p.Received))}
		})
}

func healthCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "health --network URL",
		Short: "Say whether a network works",
		Long: `Look at a network through one of its validators: whether it makes blocks and follows the others, whether
its validators vote, whether this machine's clock fits, how many participants offer work, and whether the coins add up.
A failed check gives exit code 12. starling doctor examines a machine.

With -o json: {"status","checks":[{"name","ok","text"}],"uptime_seconds"}, the status ok or degraded.`,
		Example: `  starling network health --network http://127.0.0.1:26601
  starling network health --home net/worker-0 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.Settle(cmd); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			h, err := dashboard.NetworkHealth(ctx, t.Network, time.Now())
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				err = c.Form.Print(os.Stdout, terminal.List(h, h.Checks, func(x api.HealthCheck) string { return x.Name }))
			} else {
				err = printHealth(h, c.Form)
			}
			if h.Status != "ok" {
				err = errors.Join(err, terminal.WithExit(&terminal.Problem{Code: "NETWORK_DEGRADED",
					What: "the network is not as it should be", Why: failing(h),
					Fix: "compare with another validator; docs/operate.md says what to do"}, terminal.ExitFindings))
			}
			return err
		},
	}
	t.Flags(cmd)
	return cmd
}

func failing(h *api.Health) string {
	var texts []string
	for _, x := range h.Checks {
		if !x.OK {
			texts = append(texts, x.Name+": "+x.Text)
		}
	}
	return strings.Join(texts, "; ")
}

func printHealth(h *api.Health, f terminal.Form) error {
	w := terminal.NewColumns(os.Stdout, f, "CHECK", "STATE", "WHAT")
	for _, x := range h.Checks {
		w.Row(x.Name, map[bool]string{true: "ok", false: "FAILS"}[x.OK], x.Text)
	}
	return w.Flush()
}
