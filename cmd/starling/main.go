// Command starling trains models on a network of workers that nobody has to believe. It holds flags, output and exit
// codes; everything else is below node/.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/manual"
	"github.com/starling-network/starling/cmd/starling/passphrase"
	"github.com/starling-network/starling/cmd/starling/startup"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/provider"
)

func main() {
	startup.Done()
	provider.SetMaxProcs()
	os.Exit(run(untilInterrupted(), os.Args[1:]))
}

// untilInterrupted is done with the first Ctrl-C or SIGTERM. Nobody waits for the second, which so ends the process at
// once, whatever it is doing.
func untilInterrupted() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // before anybody says that it has heard the first
		cancel()
	}()
	return ctx
}

func run(ctx context.Context, args []string) int {
	c := &cli{}
	err := c.execute(ctx, args)
	if err != nil {
		if printErr := terminal.PrintError(os.Stderr, err, c.form.Machine()); printErr != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return terminal.ExitCode(err)
}

// execute runs a command, and explains the error that it returns.
func (c *cli) execute(ctx context.Context, args []string) error {
	root := c.root()
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		c.form = formIn(args, c.form)
		return usage(cmd, err)
	})
	return cause(interrupted(ctx, root.ExecuteContext(ctx), ""))
}

// cli holds the flags that every command has.
type cli struct {
	form  terminal.Form
	quiet bool
}

func (c *cli) root() *cobra.Command {
	var secret string // file of the passphrase
	root := &cobra.Command{
		Use:   "starling",
		Short: "Train models on a network of workers that nobody has to believe",
		Long: `Starling trains models on machines whose owners do not trust each other. Every step of training is
reproducible bit for bit: work is sampled and done again, a disagreement is narrowed down to
one tile of one operator that the chain recomputes, liars lose their stake, and pay follows verified work.`,
		Example: `  starling train examples/quickstart.yaml
  starling job verify out/quickstart
  starling model generate out/quickstart --prompt "func " --tokens 100`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usage(cmd, fmt.Errorf("there is no command %q%s", args[0], didYouMean(cmd.SuggestionsFor(args[0]))))
		},
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:                    binaryVersion(),
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		SilenceErrors:              true,
		PersistentPreRunE:          func(cmd *cobra.Command, _ []string) error { return c.prepare(cmd, secret) },
	}
	f := root.PersistentFlags()
	f.StringVarP((*string)(&c.form), "output", "o", string(terminal.Table), "what standard output carries: "+forms(", "))
	f.BoolVarP(&c.quiet, "quiet", "q", false, "show no progress")
	f.StringVar(&secret, "passphrase-file", os.Getenv(passphrase.Variable),
		"file whose first line is the passphrase of encrypted keys (default: $"+passphrase.Variable+", or ask)")
	f.Lookup("passphrase-file").DefValue = ""
	root.AddCommand(
		c.train(), c.sim(), c.job(), c.data(), c.model(), c.web(),
		c.worker(), c.verifier(), c.market(), c.account(),
		c.validator(), c.network(), c.dev(root),
		c.bench(), c.doctor(), c.version(),
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

func forms(between string) string { return strings.Join(formNames(), between) }

// prepare checks the global flags and chooses the kernels.
func (c *cli) prepare(cmd *cobra.Command, secret string) error {
	if !slices.Contains(terminal.Forms, c.form) {
		return terminal.WithExit(&terminal.Problem{
			Code: "USAGE", What: fmt.Sprintf("there is no output %q", c.form), Fix: "use -o with one of " + forms(", "),
		}, terminal.ExitUsage)
	}
	if c.form == terminal.Name && cmd.Annotations[answerKind] == figures[answerKind] {
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

func usage(cmd *cobra.Command, err error) error {
	return terminal.WithExit(&terminal.Problem{
		Code: "USAGE", What: err.Error(), Fix: fmt.Sprintf("see `%s --help`", cmd.CommandPath()),
	}, terminal.ExitUsage)
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// exactly is cobra.ExactArgs with our errors.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == len(names):
			return nil
		case len(names) == 0 && cmd.HasAvailableSubCommands():
			cmd.SuggestionsMinimumDistance = cmd.Root().SuggestionsMinimumDistance
			return usage(cmd, fmt.Errorf("there is no command %q of %s%s", args[0], cmd.CommandPath(),
				didYouMean(cmd.SuggestionsFor(args[0]))))
		case len(names) == 0:
			return usage(cmd, fmt.Errorf("%q is given, and %s takes no argument", args[0], cmd.CommandPath()))
		}
		given := terminal.Counted(len(args), "argument")
		return usage(cmd, fmt.Errorf("%s given, wanted %s", given, strings.Join(names, " ")))
	}
}

func exitCodes(c *cli) *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "Show the exit codes of every command", Long: terminal.ExitCodesText(),
		Example: "  starling dev exit-codes -o json", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !c.form.Machine() {
				return cmd.Help()
			}
			return c.form.Print(os.Stdout, terminal.ExitCodesAnswer())
		},
	}
}

// interrupted turns the error of a cancelled context into the answer to Ctrl-C.
func interrupted(ctx context.Context, err error, resume string) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return terminal.Interrupted(resume)
	}
	return err
}
