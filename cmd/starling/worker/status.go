package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/accelerator/shared"
	"github.com/starling-network/starling/node/control"
	"github.com/starling-network/starling/node/hours"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/provider"
	"github.com/starling-network/starling/node/provider/peers"
	"github.com/starling-network/starling/protocol/standing"
)

// Report is what a process and the chain say about a worker or verifier.
type Report struct {
	Running bool                   `json:"running"`
	Process *provider.WorkerStatus `json:"process,omitempty"`
	Height  int64                  `json:"height,omitempty"` // from the chain
	Account *inspect.AccountStatus `json:"account,omitempty"`
	Problem string                 `json:"problem,omitempty"` // why the chain could not be asked
	unasked error                  // the same
}

// address is the account, as the chain or the process says.
func (r *Report) address() string {
	if r.Account != nil {
		return r.Account.Address
	}
	return r.Process.Address
}

// reportOf asks the process and the chain. One of them may not answer.
func reportOf(cmd *cobra.Command, t *target.Target) (*Report, error) {
	if t.Home == "" {
		return nil, usage.Error(cmd, errors.New("--home is needed"))
	}
	r, p := &Report{}, &provider.WorkerStatus{}
	switch err := control.Status(cmd.Context(), t.Home, p); {
	case err == nil:
		r.Running, r.Process = true, p
	case !errors.Is(err, control.ErrNotRunning):
		return nil, err
	}
	if err := t.Settle(cmd); err != nil {
		return nil, err
	}
	s, err := t.Ask(cmd.Context())
	switch {
	case err == nil:
		r.Height, r.Account = s.Height, s.Account
		r.Account.Reasons = append(r.process(), r.Account.Reasons...)
	case !r.Running:
		return nil, err
	default:
		r.Problem, r.unasked = err.Error(), err
	}
	return r, nil
}

// process is what the process itself is a reason for.
func (r *Report) process() []standing.Reason {
	if r.Running {
		p := hours.Process{Pause: r.Process.Pause, Refused: r.Process.Refused}
		if reasons := p.Reasons(); len(reasons) > 0 {
			return reasons
		}
	}
	switch {
	case !r.Running:
		return []standing.Reason{{Code: standing.NotRunning, Kind: standing.Blocked, Text: "no process runs over the folder",
			Do: "start it with starling worker up"}}
	case r.Process.Height+staleBlocks < r.Height:
		return []standing.Reason{{Code: standing.Behind, Kind: standing.Blocked,
			Text: fmt.Sprintf("the process has seen block %d, and the chain is at %d", r.Process.Height, r.Height),
			Do:   "see worker.log in its folder; start it again if it stays behind"}}
	}
	return nil
}

// staleBlocks is how far behind the chain a process is that does not follow it.
const staleBlocks = 10

const reportShape = `With -o json: {"running","process":{"pid","version","role","address","peer_id",` +
	`"listen","network","since",
"height","block_time","draining","pause":{"paused","since","until","why"},"runs",
"actions":[{"job","action","since"}],"busy":[{"class","seconds","share"}],"busy_share","sent_bytes","received_bytes",
"peak_memory_bytes",
"device":{"uses","name","driver","memory_bytes","passed_at","units","failed_units","faulty","error","processor"},
"store":{"held_bytes","pinned_bytes","quota_bytes"},"replicas":{"held","missing"},"peers":[{"peer","address","relayed",
"round_trip_seconds","download_bytes_per_second","sent_bytes","received_bytes"}],"refused":{JOB:TEXT}},"height",
"account":{"address","balance_uzen","stake_uzen","slashed_uzen","jailed","earning","payee",
"reasons":[{"code","kind","job","round","text",
"until","do"}]},"problem"}, the process only if it runs.`

func statusCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "status --home DIR",
		Short: "Show what a worker or verifier is doing",
		Long: `Ask the process that runs over a folder what it is doing, and the chain what it says of its account.

` + reportShape,
		Example: `  starling worker status --home net/worker-0`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := reportOf(cmd, &t)
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(r, r.address()))
			}
			return printWorker(r, time.Now())
		},
	}
	t.Flags(cmd)
	return cmd
}

func printWorker(r *Report, now time.Time) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	if p := r.Process; p != nil {
		state := "running"
		if p.Draining {
			state = "draining"
		}
		fmt.Fprintf(w, "process\t%d, %s as %s for %s\n", p.PID, state, p.Role, terminal.Span(now.Sub(p.Since)))
		if p.Pause.Paused {
			fmt.Fprintf(w, "pause\t%s\n", p.Pause)
		}
		fmt.Fprintf(w, "identity\t%s\n", p.PeerID)
		for _, a := range p.Listen {
			fmt.Fprintf(w, "listens\t%s\n", a)
		}
		fmt.Fprintf(w, "device\t%s\n", deviceText(p.Device))
		fmt.Fprintf(w, "height\t%d\n", p.Height)
		fmt.Fprintf(w, "blobs\t%s sent, %s received\n", terminal.Bytes(p.Sent), terminal.Bytes(p.Received))
		if p.Peak > 0 {
			fmt.Fprintf(w, "memory\t%s at most, since it began\n", terminal.Bytes(p.Peak))
		}
		fmt.Fprintf(w, "disk\t%s of %s, %s of it needed by runs\n", terminal.Bytes(uint64(p.Store.Held)),
			terminal.Bytes(uint64(p.Store.Quota)), terminal.Bytes(uint64(p.Store.Pinned)))
		fmt.Fprintf(w, "replicas\t%d held, %d missing\n", p.Replicas.Held, p.Replicas.Missing)
		for _, l := range p.Peers {
			fmt.Fprintf(w, "peer\t%s\n", link(l))
		}
		for _, job := range p.Runs {
			fmt.Fprintf(w, "run\t%s\n", job)
		}
		fmt.Fprintf(w, "busy\t%s\n", busyText(p))
		for _, a := range p.Actions {
			fmt.Fprintf(w, "action\t%s, for %s\n", a.Action, terminal.Span(now.Sub(a.Since)))
		}
	} else {
		fmt.Fprintln(w, "process\tnone")
	}
	if a := r.Account; a != nil {
		fmt.Fprintf(w, "account\t%s\n", a.Address)
		fmt.Fprintf(w, "coins\t%s ZEN, %s staked, %s slashed\n", terminal.Zen(a.Balance), terminal.Zen(a.Stake),
			terminal.Zen(a.Slashed))
		if a.Earning {
			fmt.Fprintln(w, "stake\tit earns it: pay is kept until the stake is reached, and every unit is audited")
		}
		if a.Payee != "" {
			fmt.Fprintf(w, "paid to\t%s\n", a.Payee)
		}
	} else {
		fmt.Fprintf(w, "chain\t%s\n", r.Problem)
	}
	if err := w.Flush(); err != nil || r.Account == nil {
		return err
	}
	fmt.Println()
	return target.PrintReasons(r.Account.Reasons, r.Height)
}

// busyText says for how much of its time a process computed.
func busyText(p *provider.WorkerStatus) string {
	text := fmt.Sprintf("%.1f %% of the time since it began", 100*p.Share)
	for i, s := range p.Busy {
		text += map[bool]string{true: ": ", false: ", "}[i == 0] + fmt.Sprintf("%s %.1f %%", s.Class, 100*s.Share)
	}
	return text
}

// deviceText says what computes the units of a worker.
func deviceText(d shared.Status) string {
	text := d.Uses + ", " + d.Name
	if d.Driver != "" {
		text += fmt.Sprintf(", driver %s, exact since %s", d.Driver, d.Passed.Format(time.DateTime))
	}
	switch {
	case d.Faulty:
		text += "; the device is faulty: " + d.Why
	case d.Why != "":
		text += "; no device: " + d.Why
	}
	if d.Units > 0 {
		text += fmt.Sprintf("; the device computed %d units", d.Units)
	}
	if d.Error != "" && !d.Faulty {
		text += fmt.Sprintf("; it failed at %d units: %s", d.Failed, d.Error)
	}
	return text
}

// link says what is known of the way to a peer.
func link(l peers.Status) string {
	text := l.Peer
	switch {
	case l.Address == "":
		text += ", not connected"
	case l.Relayed:
		text += ", through a relay"
	}
	if l.RoundTrip > 0 {
		text += fmt.Sprintf(", %.0f ms", 1000*l.RoundTrip)
	}
	if l.Download > 0 {
		text += fmt.Sprintf(", delivers %s a second", terminal.Bytes(uint64(l.Download)))
	}
	return text + fmt.Sprintf(", %s sent, %s received", terminal.Bytes(l.Sent), terminal.Bytes(l.Received))
}

func explainCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "explain --home DIR",
		Short: "Explain what a worker or verifier waits for",
		Long: `Say what a worker or verifier is doing and what it waits for, each with its reason and what to do about
it: an order that does not match and the condition that fails, a beacon, the window of a round, the
commitments of others, an audit, a dispute, or its owner. A line is one of

  works     it owes something, and is at it
  waits     for others, or for a height
  blocked   it does nothing until you follow the advice
  over      there is nothing more to come

Payments, and what was not paid, are explained by starling job explain.

` + reportShape,
		Example: `  starling worker explain --home net/worker-0`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := reportOf(cmd, &t)
			switch {
			case err != nil:
				return err
			case c.Form.Machine():
				return c.Form.Print(os.Stdout, terminal.One(r, r.address()))
			case r.Account == nil:
				return r.unasked
			}
			return target.PrintReasons(r.Account.Reasons, r.Height)
		},
	}
	t.Flags(cmd)
	return cmd
}

func drainCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "drain --home DIR",
		Short: "Let a worker or verifier finish its runs and end",
		Long: `Tell the process that runs over a folder to drain, as its first Ctrl-C does: it takes no new runs,
leaves the present ones when its unit is committed, and ends when nothing of it is open there. If none runs,
the offer of its account is withdrawn.

With -o json: {"draining":BOOL,"withdrawn":BOOL}.`,
		Example: `  starling worker drain --home net/worker-0`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if t.Home == "" {
				return usage.Error(cmd, errors.New("--home is needed"))
			}
			err := control.Drain(cmd.Context(), t.Home)
			draining, text := err == nil, "draining: the process stops once its current work is settled"
			if errors.Is(err, control.ErrNotRunning) {
				err, text = withdraw(cmd, &t), "no process runs; the offer is withdrawn"
			}
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(map[string]bool{"draining": draining, "withdrawn": !draining}, t.Home))
			}
			fmt.Println(text)
			return nil
		},
	}
	t.Flags(cmd)
	return cmd
}

func withdraw(cmd *cobra.Command, t *target.Target) error {
	if err := t.Settle(cmd); err != nil {
		return err
	}
	f, err := keystore.ReadParty(t.Home)
	if err != nil {
		return err
	}
	f.Network = t.Network
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
	defer cancel()
	return inspect.WithdrawOffer(ctx, t.Home, f)
}
