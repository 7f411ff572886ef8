package main

import (
	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/flagfile"
	"github.com/starling-network/starling/node/confine"
	"github.com/starling-network/starling/node/torch"
)

// executorFlags are about the PyTorch that takes the steps of jobs with executor: torch.
func executorFlags(cmd *cobra.Command, o *torch.Options) {
	f := cmd.Flags()
	f.StringVar(&o.Python, "executor-python", torch.DefaultPython, "with executor: torch, the Python that has torch")
	f.StringVar(&o.Module, "executor-module", "", "with executor: torch, a Python file of yours with a function step(task, state, batch), in place of the job's operators")
	f.StringVar(&o.Device, "executor-device", torch.DefaultDevice, "with executor: torch, what it computes on: cpu, cuda, cuda:1, or auto")
	f.Uint64Var(&o.MiB, "executor-memory", torch.DefaultMiB, "with executor: torch, MiB that it may allocate")
	f.DurationVar(&o.Timeout, "executor-timeout", torch.DefaultTimeout, "with executor: torch, how long one step may take")
	f.Var(flagfile.OneOf((*string)(&o.Box), string(confine.Full), string(confine.Reduced)), "executor-isolation", "with executor: torch, full, or reduced where the system allows no namespaces: no network and no processes still, but it can read your files")
}
