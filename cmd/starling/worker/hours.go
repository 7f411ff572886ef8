package worker

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/hours"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/standing"
)

// workedHour is an hour of a worker or verifier, for programs.
type workedHour struct {
	Hour     time.Time                  `json:"hour"`
	Reason   standing.Cause             `json:"reason"` // that took most of it
	Text     string                     `json:"text"`
	Do       string                     `json:"do,omitempty"`
	Received *uint64                    `json:"received_uzen,omitempty"` // absent: the network could not be asked
	Lost     uint64                     `json:"lost_uzen"`
	Seconds  map[standing.Cause]float64 `json:"seconds"`
}

func causeNames() string {
	names := make([]string, len(standing.Causes))
	for i, c := range standing.Causes {
		names[i] = string(c)
	}
	return strings.Join(names, ", ")
}

func hoursCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var last time.Duration
	cmd := &cobra.Command{
		Use:   "hours --home DIR",
		Short: "Give every hour of a worker its pay, and the reason for it",
		Long: `Show the hours of a worker or verifier, in UTC, the latest first: the pay of each, the one reason that took
most of it, for how long, and what would change it. The process notes the reason every 30 seconds in hours.json of its
folder, for 62 days; time of which nothing is noted is time without a process. Pay comes when rounds are final, often
in a later hour than the work. If the network does not answer, the pay is left out.

The reason is one of ` + causeNames() + `.

With -o json: {"home","hours":[{"hour","reason","text","do","received_uzen","lost_uzen","seconds":{REASON:SECONDS}}]}.`,
		Example: `  starling worker hours --home net/worker-0
  starling worker hours --home net/worker-0 --last 168h -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if t.Home == "" {
				return usage.Error(cmd, errors.New("--home is needed"))
			}
			if last < time.Hour {
				return usage.Error(cmd, fmt.Errorf("--last %s: give an hour or more", last))
			}
			if err := t.Settle(cmd); err != nil {
				return err
			}
			now := time.Now()
			kept, err := hours.Read(t.Home, now.Add(-last), now)
			if err != nil {
				return err
			}
			if len(kept) == 0 {
				return terminal.WithExit(&terminal.Problem{Code: "NO_HOURS", What: "no hour of " + t.Home + " is noted",
					Why: "a worker or verifier of this version notes them while it runs",
					Fix: "start it with starling worker up, and wait a minute"}, terminal.ExitNotFound)
			}
			earned, unasked := inspect.EarnedByHour(cmd.Context(), t.Network, t.Account)
			list := make([]workedHour, len(kept))
			for i, h := range kept {
				cause := h.Main()
				why := h.Because(cause)
				list[i] = workedHour{Hour: h.Begins, Reason: cause, Text: why.Text, Do: why.Do, Seconds: h.Seconds}
				if unasked == nil {
					e := earned[h.Begins.Format(inspect.HourForm)]
					list[i].Received, list[i].Lost = &e.ReceivedUzen, e.LostUzen
				}
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.List(map[string]any{"home": t.Home, "hours": list}, list,
					func(h workedHour) string { return h.Hour.Format(time.RFC3339) }))
			}
			if unasked != nil {
				fmt.Fprintln(os.Stderr, "warning: the pay is left out, as the network does not answer:", unasked)
			}
			return printHours(c, list)
		},
	}
	t.Flags(cmd)
	cmd.Flags().DurationVar(&last, "last", 24*time.Hour, "how far back")
	return cmd
}

func printHours(c *terminal.Console, list []workedHour) error {
	w := terminal.NewColumns(os.Stdout, c.Form, "HOUR", "RECEIVED", "REASON", "MINUTES", "BECAUSE", "+TO DO", "+LOST")
	for _, h := range list {
		received := "?"
		if h.Received != nil {
			received = terminal.Zen(*h.Received)
		}
		because := h.Text
		if h.Do != "" && h.Reason != standing.CauseWorking {
			because += "; " + h.Do
		}
		w.Row(h.Hour.Format("2006-01-02 15:04"), received, h.Reason, fmt.Sprintf("%.0f", h.Seconds[h.Reason]/60), because,
			h.Do, terminal.Zen(h.Lost))
	}
	return w.Flush()
}
