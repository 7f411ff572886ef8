// Package executor has the flags of commands that let PyTorch train, and the question whether a reduced box is enough.
// It starts no PyTorch: node/torch does.
package executor

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/flagfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/confine"
	"github.com/starling-network/starling/node/torch"
)

// Flags are about the PyTorch that takes the steps of jobs with executor: torch.
func Flags(cmd *cobra.Command, o *torch.Options) {
	f := cmd.Flags()
	f.StringVar(&o.Python, "executor-python", torch.DefaultPython, "with executor: torch, the Python that has torch")
	f.StringVar(&o.Module, "executor-module", "", "with executor: torch, a Python file of yours with a function "+
		"step(task, state, batch), in place of the job's operators")
	f.StringVar(&o.Device, "executor-device", torch.DefaultDevice,
		"with executor: torch, what it computes on: cpu, cuda, cuda:1, or auto")
	f.Uint64Var(&o.MiB, "executor-memory", torch.DefaultMiB, "with executor: torch, MiB that it may allocate")
	f.DurationVar(&o.Timeout, "executor-timeout", torch.DefaultTimeout, "with executor: torch, how long one step may take")
	f.Var(flagfile.OneOf((*string)(&o.Box), string(confine.Full), string(confine.Reduced)), FlagIsolation,
		"with executor: torch, full, or reduced where the system allows no namespaces: no network and no processes still, "+
			"but it can read your files")
}

// FlagIsolation is the flag that says how much of a box the child of PyTorch has.
const FlagIsolation = "executor-isolation"

// ConfirmReduced reports why PyTorch may not run in a reduced box in this start: the user has to confirm it for each
// start, on the command line, as typed says, or when asked. A file of flags is not enough.
func ConfirmReduced(c *terminal.Console, o *torch.Options, typed bool) error {
	if o == nil || o.Box != confine.Reduced {
		return nil
	}
	const what = "PyTorch runs in a reduced box: what strangers wrote is read by a process that can read your files, " +
		"keys included"
	if typed {
		c.Say("EXECUTOR_REDUCED: " + what)
		return nil
	}
	if terminal.IsTerminal(os.Stdin) && terminal.IsTerminal(os.Stderr) {
		fmt.Fprintf(os.Stderr, "%s. Start it all the same? [y/N] ", what)
		answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		if a := strings.ToLower(strings.TrimSpace(answer)); a == "y" || a == "yes" {
			return nil
		}
	}
	return terminal.WithExit(&terminal.Problem{
		Code: "EXECUTOR_REDUCED", What: what, Why: "a file asks for it, and it is not confirmed for this start",
		Fix: "give --" + FlagIsolation + " reduced on the command line, or use full where the system has namespaces",
	}, terminal.ExitUsage)
}
