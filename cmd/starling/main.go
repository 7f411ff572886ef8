// Command starling trains models on a network of workers that need no trust. It holds flags, output and exit codes;
// everything else is below node/.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/account"
	"github.com/starling-network/starling/cmd/starling/bench"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/data"
	"github.com/starling-network/starling/cmd/starling/dev"
	"github.com/starling-network/starling/cmd/starling/doctor"
	"github.com/starling-network/starling/cmd/starling/fleet"
	"github.com/starling-network/starling/cmd/starling/job"
	"github.com/starling-network/starling/cmd/starling/manual"
	"github.com/starling-network/starling/cmd/starling/market"
	"github.com/starling-network/starling/cmd/starling/model"
	"github.com/starling-network/starling/cmd/starling/network"
	"github.com/starling-network/starling/cmd/starling/passphrase"
	"github.com/starling-network/starling/cmd/starling/payout"
	"github.com/starling-network/starling/cmd/starling/sim"
	"github.com/starling-network/starling/cmd/starling/startup"
	"github.com/starling-network/starling/cmd/starling/supervise"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/train"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/cmd/starling/validator"
	"github.com/starling-network/starling/cmd/starling/verifier"
	"github.com/starling-network/starling/cmd/starling/version"
	"github.com/starling-network/starling/cmd/starling/web"
	"github.com/starling-network/starling/cmd/starling/worker"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/maxprocs"
)

func main() {
	startup.Done()
	maxprocs.Set()
	os.Exit(run(untilInterrupted(), os.Args[1:]))
}

// untilInterrupted is done with the first Ctrl-C or SIGTERM. The second signal is not caught, and ends the process at
// once. A shell has processes in the background ignore SIGINT, which would then be ignored again: there the second
// signal is caught, too.
func untilInterrupted() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	ignored := signal.Ignored(os.Interrupt)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		if ignored {
			cancel()
			<-signals
			os.Exit(terminal.ExitInterrupted)
		}
		signal.Stop(signals) // before the command says that it has received the first
		cancel()
	}()
	return ctx
}

func run(ctx context.Context, args []string) int {
	c := &terminal.Console{}
	err := execute(ctx, c, args)
	if err != nil {
		if printErr := terminal.PrintError(os.Stderr, err, c.Form.Machine()); printErr != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return terminal.ExitCode(err)
}

// execute runs a command, and explains the error that it returns.
func execute(ctx context.Context, c *terminal.Console, args []string) error {
	root := rootCommand(c)
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		c.Form = formIn(args, c.Form)
		if _, rest, _ := root.Find(args); cmd.HasAvailableSubCommands() && len(rest) > 0 && rest[0][:1] != "-" {
			if unknown := cmd.Args(cmd, rest[:1]); unknown != nil { // the flag is that of a command that is not there
				return unknown
			}
		}
		return usage.Error(cmd, err)
	})
	return cause.Explain(terminal.IfInterrupted(ctx, root.ExecuteContext(ctx), ""))
}

func rootCommand(c *terminal.Console) *cobra.Command {
	var secret string // file of the passphrase
	root := &cobra.Command{
		Use:   "starling",
		Short: "Train models on a network of workers that need not be trusted",
		Long: `Starling trains models on machines whose owners do not trust each other. Every step of training is
reproducible bit for bit: work is sampled and done again, a disagreement is narrowed down to
one tile of one operator that the chain recomputes, liars lose their stake, and pay follows verified work.`,
		Example: `  starling train examples/quickstart.yaml
  starling job verify out/quickstart`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usage.Error(cmd, fmt.Errorf("there is no command %q%s", args[0],
				usage.DidYouMean(cmd.SuggestionsFor(args[0]))))
		},
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:                    version.Binary(),
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		SilenceErrors:              true,
		PersistentPreRunE:          func(cmd *cobra.Command, _ []string) error { return setUp(c, cmd, secret) },
	}
	f := root.PersistentFlags()
	f.StringVarP((*string)(&c.Form), "output", "o", string(terminal.Table), "what standard output carries: "+forms(", "))
	f.BoolVarP(&c.Quiet, "quiet", "q", false, "show no progress")
	f.StringVar(&secret, "passphrase-file", os.Getenv(passphrase.Variable),
		"file whose first line is the passphrase of encrypted keys (default: $"+passphrase.Variable+", or ask)")
	f.Lookup("passphrase-file").DefValue = ""
	root.AddCommand(
		train.Command(c), sim.Command(c), job.Command(c), data.Command(c), model.Command(c), web.Command(c),
		web.Gateway(c),
		worker.Command(c), fleet.Command(c), verifier.Command(c), market.Command(c), account.Command(c), payout.Command(c),
		validator.Command(c), network.Command(c), dev.Command(c, root),
		bench.Command(c), doctor.Command(c), version.Command(c), supervise.Command(c),
	)
	addMoved(c, root)
	manual.Install(root)
	complete(root)
	return root
}

// formIn is the form that arguments ask for where a flag before -o cannot be understood, so that a program that asks
// for JSON gets errors as JSON; otherwise or.
func formIn(args []string, or terminal.Form) terminal.Form {
	f := (&cobra.Command{}).Flags()
	f.ParseErrorsAllowlist.UnknownFlags = true
	f.StringVarP((*string)(&or), "output", "o", string(or), "")
	_ = f.Parse(args) // what it finds before it gives up
	return or
}

func forms(between string) string { return strings.Join(terminal.FormNames(), between) }

// setUp checks the global flags and chooses the kernels.
func setUp(c *terminal.Console, cmd *cobra.Command, secret string) error {
	if !slices.Contains(terminal.Forms, c.Form) {
		return terminal.WithExit(&terminal.Problem{
			Code: "USAGE", What: fmt.Sprintf("there is no output %q", c.Form), Fix: "use -o with one of " + forms(", "),
		}, terminal.ExitUsage)
	}
	if c.Form == terminal.Name && cmd.Annotations[terminal.AnswerKind] == terminal.FiguresOnly[terminal.AnswerKind] {
		return terminal.Nameless("what " + cmd.CommandPath() + " finds") // before it takes minutes to find it
	}
	passphrase.From(secret)
	if err := kernel.Select(os.Getenv("STARLING_KERNELS")); err != nil {
		return terminal.WithExit(&terminal.Problem{
			Code: "KERNELS_UNAVAILABLE", What: "STARLING_KERNELS names kernels that cannot run here", Why: err.Error(),
			Fix: "unset STARLING_KERNELS to use the fastest that can",
		}, terminal.ExitUsage)
	}
	return nil
}
