package web

import (
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/loops"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/dashboard"
)

// training are the flags of the training loops of a server.
type training struct {
	model, name string
	flags       loops.Flags
}

const prefix = "loop-"

func (l *training) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.model, "loops", "", "folder of the model with which training loops begin; without it there are none")
	f.StringVar(&l.name, prefix+"name", "", "name of that model (default: that of its folder)")
	l.flags.Define(cmd, prefix, "")
}

// into gives the options of a server over the folder of the arguments its training loops.
func (l *training) into(cmd *cobra.Command, o *dashboard.WebOptions, args []string) error {
	switch {
	case l.model == "" && l.name != "":
		return usage.Error(cmd, errors.New("--"+prefix+"name needs --loops"))
	case l.model == "":
		return l.flags.Check(cmd, false, false, "--loops")
	case o.Data == "":
		return usage.Error(cmd, errors.New("--loops and --read-only are given: loops train, and --read-only trains nothing"))
	}
	if err := l.flags.Check(cmd, o.Home != "", true, "--home"); err != nil {
		return err
	}
	s, err := l.flags.Service(cmd, l.model, l.name, o.Home != "")
	if err != nil {
		return err
	}
	if s.Trainer.Out == "" {
		s.Trainer.Out = filepath.Join(folderOf(args), ".loops")
	}
	o.Loops = &s
	return nil
}
