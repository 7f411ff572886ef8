package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/node/control"
	"github.com/starling-network/starling/node/fleet"
	"github.com/starling-network/starling/node/provider"
)

// working is a worker of a host, as its process says.
type working struct {
	Name     string   `json:"name"`
	Home     string   `json:"home"`
	Running  bool     `json:"running"`
	Machine  string   `json:"machine,omitempty"` // its account
	Device   string   `json:"device,omitempty"`  // cpu or opencl:N
	Of       string   `json:"device_name,omitempty"`
	Draining bool     `json:"draining"`
	Paused   bool     `json:"paused"`
	Runs     []string `json:"runs"`
	Height   int64    `json:"height,omitempty"`

	Busy  []busy.Share `json:"busy"`       // by class of work, since the process began
	Share float64      `json:"busy_share"` // of that time, of all classes
}

// state is the state of a worker in a word.
func (w working) state() string {
	switch {
	case !w.Running:
		return "stopped"
	case w.Draining:
		return "draining"
	case w.Paused:
		return "paused"
	case len(w.Runs) > 0:
		return "working"
	}
	return "waiting"
}

// busy is the part of its time in which a worker computed.
func (w working) busy() string {
	if !w.Running {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*w.Share)
}

// onHost asks the workers of a host.
func onHost(ctx context.Context, dir string) (list []working, err error) {
	homes, err := fleet.Homes(dir)
	if err != nil {
		return nil, err
	}
	for _, home := range homes {
		var p provider.WorkerStatus
		w := working{Name: filepath.Base(home), Home: home, Runs: []string{}, Busy: []busy.Share{}}
		switch err := control.Status(ctx, home, &p); {
		case err == nil:
			w.Running, w.Machine, w.Height = true, p.Address, p.Height
			w.Device, w.Of, w.Draining, w.Paused = p.Device.Uses, p.Device.Name, p.Draining, p.Pause.Paused
			w.Runs, w.Busy, w.Share = append(w.Runs, p.Runs...), append(w.Busy, p.Busy...), p.Share
		case !errors.Is(err, control.ErrNotRunning):
			return nil, fmt.Errorf("%s: %w", home, err)
		}
		list = append(list, w)
	}
	return list, nil
}

// printHost prints the workers of a host.
func printHost(ctx context.Context, c *terminal.Console, dir string) error {
	list, err := onHost(ctx, dir)
	if err != nil {
		return err
	}
	return terminal.PrintList(c.Form, "workers", list, func(w working) string { return w.Home },
		[]string{"WORKER", "STATE", "DEVICE", "BUSY", "RUNS", "MACHINE", "+NAME", "+HEIGHT"}, func(w working) []any {
			return []any{w.Name, w.state(), w.Device, w.busy(), strings.Join(w.Runs, ", "), w.Machine, w.Of, w.Height}
		})
}

// drainHost drains all workers of a host that run, and prints them.
func drainHost(ctx context.Context, c *terminal.Console, dir string) error {
	homes, err := fleet.Homes(dir)
	if err != nil {
		return err
	}
	for _, home := range homes {
		if failed := control.Drain(ctx, home); failed != nil && !errors.Is(failed, control.ErrNotRunning) {
			err = errors.Join(err, fmt.Errorf("%s: %w", home, failed))
		}
	}
	return errors.Join(err, printHost(ctx, c, dir))
}

func statusCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "status DIR",
		Short: "Show the workers of this host",
		Long: `Ask the workers of a host, whose folder is that of starling fleet up, for their devices, accounts and runs.
starling worker status says more of one of them; starling fleet list has all machines of an account, as the network
sees them.

States: stopped, waiting, working, paused, draining. Busy is the part of the time since the process began in which it
computed, of all classes of work: training, verification, generation, evaluation, hosting.

With -o json: {"workers":[{"name","home","running","machine","device","device_name","draining","paused","runs",
"height","busy":[{"class","seconds","share"}],"busy_share"}]}.`,
		Example: `  starling fleet status fleet
  starling fleet status fleet -o json`,
		Args: usage.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return printHost(cmd.Context(), c, args[0]) },
	}
}
