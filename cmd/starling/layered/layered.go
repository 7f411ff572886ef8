// Package layered has the commands about models whose layers live on several machines: one cuts a model into stages,
// one holds a stage. The front of the stages is starling model serve, or host.
package layered

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model/rekey"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/layered"
	"github.com/starling-network/starling/node/layered/left"
	"github.com/starling-network/starling/node/layered/linked"
	"github.com/starling-network/starling/node/layered/part"
)

// Commands are those of starling model about stages.
func Commands(c *terminal.Console) []*cobra.Command {
	return []*cobra.Command{splitCommand(c), stageCommand(c)}
}

// Front is the flags of a command that answers requests with the front of a model in stages.
type Front struct {
	holders []string
	check   float64 // percent
	skip    bool
}

// Flags adds the flags.
func (f *Front) Flags(to *pflag.FlagSet) {
	to.StringSliceVar(&f.holders, "holder", nil, "multiaddr of a holder of a stage, of a model in stages whose front "+
		"the folder has (repeatable, several for a stage)")
	to.Float64Var(&f.check, "recompute", 5, "percent of the texts that a second holder of each stage computes again, "+
		"drawn in secret")
}

// SkipFlag adds the flag by which texts continue without a stage. A command that signs receipts has none: they are of
// the whole model.
func (f *Front) SkipFlag(to *pflag.FlagSet) {
	to.BoolVar(&f.skip, "skip-missing", false, "continue texts without a stage that no holder answers for, of a model "+
		"whose training left stages out (parallel.skip); answers say so")
}

// Open returns the side of the front in a folder; nil: the folder has a whole model. home is the folder of its key.
func (f *Front) Open(cmd *cobra.Command, folder, dir string) (*linked.Front, error) {
	switch {
	case !part.Is(folder):
		if len(f.holders) > 0 || f.skip {
			return nil, usage.Error(cmd, fmt.Errorf("--holder and --skip-missing are for the front of a model in stages, and "+
				"%s has none: starling model split makes it", folder))
		}
		return nil, nil
	case f.check < 0 || f.check > 100:
		return nil, usage.Error(cmd, errors.New("--recompute is a percentage, from 0 to 100"))
	case dir == "" || len(f.holders) == 0:
		return nil, usage.Error(cmd, fmt.Errorf("%s has the front of a model in stages: --home and --holder are needed, "+
			"the folder of its key and the addresses of the stages", folder))
	}
	h, _, err := home.Open(dir)
	if err != nil {
		return nil, cause.Home(err)
	}
	if f.skip {
		if err := skips(folder); err != nil {
			return nil, err
		}
	}
	return &linked.Front{Key: h.Peer(), Holders: f.holders, CheckPPM: uint32(f.check * 10_000), Skip: f.skip,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}, nil
}

// skips refuses the front of a model whose texts cannot be continued without any stage.
func skips(folder string) error {
	m, l, err := part.ReadManifest(folder)
	if err != nil {
		return unreadable("serve", folder, err)
	}
	why := ""
	switch {
	case m.Epoch > 0:
		why = "each stage of an epoch turns the values between stages, so that none can be left out"
	case m.Left == nil:
		why = "no microbatch left out a stage when the model was trained, so that it predicts far worse without one"
	case m.Left.Each(l) == nil:
		why = fmt.Sprintf("each of its %d stages has a layer that all microbatches passed, or layers that no microbatch "+
			"left out together", l.Stages)
	default:
		return nil
	}
	return terminal.WithExit(&terminal.Problem{Code: "STAGES_NEEDED", What: "texts of the model in " + folder +
		" cannot be continued without a stage", Why: why, Fix: "leave --skip-missing out, or train with parallel.skip and " +
		"split the model into at least as many stages"}, terminal.ExitUsage)
}

// Unreached explains why a front has not all stages; nil: the error has another reason.
func Unreached(err error) error {
	if !errors.Is(err, layered.ErrNoHolder) {
		return nil
	}
	return terminal.WithExit(&terminal.Problem{Code: "STAGE_MISSING", What: "a stage of the model has no holder",
		Why: err.Error(), Fix: "start starling model stage for it, with --front and the peer ID of this front",
		Retry: true}, terminal.ExitUnreachable)
}

// unreadable explains why a folder cannot be used.
func unreadable(verb, folder string, err error) error {
	switch {
	case errors.Is(err, part.ErrExists):
		return terminal.WithExit(&terminal.Problem{Code: "OUT_EXISTS", What: err.Error(), Why: "it may hold stages of " +
			"another epoch", Fix: "give another --out, or remove it"}, terminal.ExitConflict)
	case errors.Is(err, section.ErrLayout):
		return terminal.WithExit(&terminal.Problem{Code: "STAGES_INVALID", What: "the model cannot be cut so",
			Why: err.Error(), Fix: "give --stages from 1 to the number of its layers, and a model without adapters"},
			terminal.ExitUsage)
	case errors.Is(err, rekey.ErrModel):
		return terminal.WithExit(&terminal.Problem{Code: "EPOCHS_UNSUPPORTED", What: "the weights of the model cannot be " +
			"changed by a key", Why: err.Error(), Fix: "leave --epoch out"}, terminal.ExitUsage)
	case errors.Is(err, left.ErrFile):
		return terminal.UnreadableModel(verb, folder, err, "remove "+left.File+", or fetch it again")
	case errors.Is(err, part.ErrPart):
		return terminal.UnreadableModel(verb, folder, err, "give the folder of a stage, which starling model split makes")
	}
	return err
}

// Holding is a holder for programs.
type Holding struct {
	Stage   int      `json:"stage"`
	Stages  int      `json:"stages"`
	Epoch   uint64   `json:"epoch"` // 0: no key has changed the weights
	Weights string   `json:"weights"`
	Addrs   []string `json:"addrs"`
}

func stageCommand(c *terminal.Console) *cobra.Command {
	var dir string
	var fronts, listen []string
	var memory, threads int
	cmd := &cobra.Command{
		Use:   "stage FOLDER --front PEER --home DIR",
		Short: "Hold a stage of a model, and compute its layers for a front",
		Long: `Hold the stage in a folder that starling model split has made, and continue texts by its layers for the
fronts whose peer IDs --front names, until interrupted. The other layers are not here, neither in memory nor on the
disk. Peers are known by their keys, and what passes between them is encrypted; a stage sees the hidden states of texts.

--home is the folder of the key of this holder. starling worker identity shows the peer ID of a folder. When the folder
gets the stage of another epoch of keys, fronts of that are answered without a restart.

With -o json, at the start: {"stage","stages","epoch","weights","addrs"}.`,
		Example: `  starling model stage parts/stage-2 --front 12D3KooW... --home holder --listen /ip4/0.0.0.0/tcp/7700`,
		Args:    usage.Exactly("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case dir == "" || len(fronts) == 0:
				return usage.Error(cmd, errors.New("--home and --front are needed: the folder of the key of this holder, and "+
					"the peer ID of a front"))
			case memory < 1 || threads < 1:
				return usage.Error(cmd, errors.New("--kv-memory and --threads must be at least 1"))
			}
			key, _, err := home.Open(dir)
			if err != nil {
				return cause.Home(err)
			}
			h, err := layered.Open(args[0], threads, int64(memory)<<20/int64(len(fronts)))
			if err != nil {
				return unreadable("hold", args[0], err)
			}
			return linked.Serve(cmd.Context(), h, key.Peer(), listen, fronts, func(addrs []string) {
				is := h.Manifest()
				if c.Form.Machine() {
					about := Holding{is.Stage, is.Stages, is.Epoch, is.Weights.String(), addrs}
					_ = c.Form.Print(os.Stdout, terminal.One(about, addrs[0]))
					return
				}
				fmt.Printf("stage    %d of %d of model %s\n", is.Stage, is.Stages, is.Weights.Short())
				for _, a := range addrs {
					fmt.Println("holder  ", a)
				}
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "home", "", "folder of the key of the holder")
	f.StringSliceVar(&fronts, "front", nil, "peer ID of a front that is answered (repeatable)")
	f.StringSliceVar(&listen, "listen", []string{"/ip4/127.0.0.1/tcp/7700"}, "multiaddr at which fronts are answered "+
		"(repeatable)")
	f.IntVar(&threads, "threads", kernel.Cores, "number of threads")
	f.IntVar(&memory, "kv-memory", 1024, "MiB that the keys and values of all texts may take, divided among fronts")
	return cmd
}
