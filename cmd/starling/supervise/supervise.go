// Package supervise is starling supervise: it runs a worker, verifier or validator and keeps its program new. The
// supervisor itself is in node/supervise.
package supervise

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/cmd/starling/version"
	"github.com/starling-network/starling/node/supervise"
)

// maxRoot is the most bytes of a file of trusted keys.
const maxRoot = 512_000

// Command is starling supervise.
func Command(c *terminal.Console) *cobra.Command {
	var o supervise.Options
	var root string
	cmd := &cobra.Command{
		Use:   "supervise --home DIR --releases URL --root FILE -- COMMAND...",
		Short: "Run a worker or validator, and keep its program up to date",
		Long: `Run a worker, verifier or validator as a child process, and replace its program by a newer release. Releases
are a repository of The Update Framework: --root is its root.json, which names the keys and how many of them must have
signed a release. Get that file from its makers by another way than --releases.

A newer release is fetched and verified while the program runs. At a time that is drawn for this machine within
the rollout of the release the work is set aside, as by starling worker pause, and the new program continues with it:
no run is left. A release that is not ready within --ready-within, or ends within a tenth of that time after it
was, is refused, and the program before it starts again.
A release with an upgrade of the chain starts at a validator when the
chain waits for that upgrade; starling fleet upgrade switches at once.

The command ends as its process does, with its exit code. Programs and state are in the folder releases within --home.
Under systemd use Type=notify: the supervisor says when its process is ready.`,
		Example: `  starling supervise --home gpu --releases https://example.org --root root.json -- worker up --home gpu
  starling supervise --home v-0 --releases file:///mnt/releases --root root.json -- validator up --home v-0
  starling fleet upgrade my-worker --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.ArgsLenAtDash()
			if at != 0 || len(args) < 2 {
				return usage.Error(cmd, errors.New("the command to run follows --, such as -- worker up --home my-worker"))
			}
			if o.Home == "" || o.URL == "" || root == "" {
				return usage.Error(cmd, errors.New("--home, --releases and --root are needed"))
			}
			if o.Every < time.Second || o.Within < time.Second {
				return usage.Error(cmd, errors.New("--every and --ready-within are at least 1s"))
			}
			var err error
			if o.Root, err = readRoot(root); err != nil {
				return terminal.WithExit(&terminal.Problem{Code: "ROOT_UNREADABLE", What: "cannot read the keys of the releases",
					Why: err.Error(), Fix: "give --root the root.json of the releases"}, terminal.ExitUsage)
			}
			if o.Program, err = os.Executable(); err != nil {
				return err
			}
			if v := version.Binary(); semver.IsValid(v) {
				o.Version = v
			}
			host, err := os.Hostname()
			if err != nil {
				return err
			}
			o.URL = strings.TrimSuffix(o.URL, "/")
			o.Args, o.Machine, o.Say = args, host+"\x00"+o.Home, c.Say
			o.Again = func(code int) bool { return code == terminal.ExitUnreachable }
			return run(cmd, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Home, "home", "", "folder of the process")
	f.StringVar(&o.URL, "releases", "", "URL of the releases; file:///FOLDER for a folder")
	f.StringVar(&root, "root", "", "root.json of the releases, which names the keys that are trusted")
	f.DurationVar(&o.Every, "every", 10*time.Minute, "time between two looks at the releases")
	f.DurationVar(&o.Within, "ready-within", 10*time.Minute, "time for a new program to be ready, ten times that "+
		"for which it must stay")
	return cmd
}

// run supervises, and ends as the process does.
func run(cmd *cobra.Command, o supervise.Options) error {
	code, err := supervise.Run(cmd.Context(), o, terminal.Interrupts(cmd.Context()))
	if err != nil || code == 0 {
		return err
	}
	return terminal.WithExit(&terminal.Problem{Code: "PROCESS_FAILED", What: fmt.Sprintf("%s ended with exit code %d",
		strings.Join(o.Args[:2], " "), code), Fix: "its own message is above"}, code)
}

func readRoot(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxRoot {
		return nil, fmt.Errorf("it has more than %d bytes", maxRoot)
	}
	return os.ReadFile(path)
}
