package loops

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/loop/record"
	"github.com/starling-network/starling/node/loop/replay"
	"github.com/starling-network/starling/node/verify"
)

// Verify executes the run in a folder again, if a client led it.
func Verify(cmd *cobra.Command, c *terminal.Console, dir, network string, opt verify.Options,
	print func(v *verify.Result)) (led bool, err error) {
	switch {
	case !record.Recorded(dir) && network != "":
		return false, usage.Error(cmd, errors.New("--network is for runs that a client led, and "+dir+
			" has no record of one"))
	case !record.Recorded(dir):
		return false, nil
	case network == "":
		return true, usage.Error(cmd, errors.New("--network is needed for a run that a client led: the HTTP interface of "+
			"a validator, such as http://127.0.0.1:26601"))
	case opt.JobFile != "" || opt.Shipped:
		return true, usage.Error(cmd, errors.New("--job and --shipped-data are given: a run that a client led has no job "+
			"file, and its data are those that the client sent"))
	}
	show := c.Counter("round")
	opt.Progress = show
	v, err := replay.Run(cmd.Context(), dir, network, opt)
	show(0, 0)
	if err != nil {
		return true, terminal.IfInterrupted(cmd.Context(), cause.Verification(err), "starling job verify "+dir)
	}
	if c.Form.Machine() {
		return true, c.Form.Print(os.Stdout, terminal.One(v, dir))
	}
	print(v)
	return true, nil
}
