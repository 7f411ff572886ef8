// Package triple has the commands about models whose weights three parties hold shares of: one divides a model, one is
// a party, and one asks the parties. The work is in node/triple.
package triple

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/exchange/replicated"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/triple"
	"github.com/starling-network/starling/node/triple/linked"
)

// Commands are those of starling model about parties.
func Commands(c *terminal.Console) []*cobra.Command {
	return []*cobra.Command{divideCommand(c), partyCommand(c), queryCommand(c)}
}

// explain gives errors their codes.
func explain(err error, folder string) error {
	switch {
	case errors.Is(err, fs.ErrExist):
		return terminal.WithExit(&terminal.Problem{Code: "OUT_EXISTS", What: err.Error(), Why: "it may hold shares of " +
			"another division", Fix: "give another --out, or remove it"}, terminal.ExitConflict)
	case errors.Is(err, triple.ErrModel):
		return terminal.UnreadableModel("divide", folder, err, "give the output folder of a finished run with task: "+
			"classify and model.architecture: mlp")
	case errors.Is(err, triple.ErrShare):
		return terminal.UnreadableModel("use", folder, err, "give the folder of a party, which starling model divide makes")
	case errors.Is(err, linked.ErrPeer):
		return terminal.WithExit(&terminal.Problem{Code: "USAGE", What: err.Error(), Fix: "give --party the addresses of " +
			"three peers in the order of their folders, and --client a peer ID, which starling worker identity shows"},
			terminal.ExitUsage)
	case errors.Is(err, linked.ErrParty):
		return terminal.WithExit(&terminal.Problem{Code: "PARTY_UNREACHABLE", What: "no answer of all three parties",
			Why: err.Error(), Fix: "check that starling model party runs for each, in the order of the folders, with the " +
				"peer ID of this client as --client", Retry: true}, terminal.ExitUnreachable)
	}
	return err
}

// parties is the flag with their addresses.
type parties []string

func (p *parties) flag(f *pflag.FlagSet) {
	f.StringSliceVar((*[]string)(p), "party", nil, "multiaddr of a party, ending in /p2p/ and its peer ID; three, in the "+
		"order of the folders (repeatable)")
}

// all are the addresses.
func (p parties) all(cmd *cobra.Command) (out [replicated.Parties]string, err error) {
	if len(p) != replicated.Parties {
		return out, usage.Error(cmd, fmt.Errorf("--party is needed three times, and was given %d times", len(p)))
	}
	copy(out[:], p)
	return out, nil
}

// Divided is a model in shares for programs.
type Divided struct {
	Folders []string `json:"folders"`
	Bound   float64  `json:"bound"`
	Risk    float64  `json:"risk"`
}

func divideCommand(c *terminal.Console) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "divide MODEL --out DIR",
		Short: "Divide the weights of a model into shares for three parties",
		Long: `Divide the weights of a model that classifies images (model.architecture: mlp) into shares for three parties:
DIR/party-1, DIR/party-2 and DIR/party-3. Give each folder to another machine, whose owners do not work together, and
keep MODEL to yourself. starling model party holds a folder, and starling model query asks all three about an image.
No party sees a weight or a pixel, as long as all follow the protocol; two of them together know everything.

The parties compute with 13 bits after the binary point. bound says how far a score of a class may be from that of the
model, but with the probability risk for each image, with which a score is wrong altogether.

With -o json: {"folders","bound","risk"}.`,
		Example: `  starling model divide out/digits --out parties`,
		Args:    usage.Exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage.Error(cmd, errors.New("--out is needed: the folder in which the folders are made"))
			}
			m, err := triple.Divide(os.DirFS(args[0]), out)
			if err != nil {
				return explain(err, args[0])
			}
			d := Divided{Bound: m.Bound, Risk: m.Risk}
			for i := range replicated.Parties {
				d.Folders = append(d.Folders, filepath.Join(out, triple.Name(i)))
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(d, out))
			}
			for _, f := range d.Folders {
				fmt.Println("folder  ", f)
			}
			_, err = fmt.Printf("bound    %.3g of a score, but for 1 of %.3g images\n", d.Bound, 1/d.Risk)
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder that is made, with a folder for each party")
	return cmd
}

// Holding is a party for programs.
type Holding struct {
	Party int      `json:"party"`
	Addrs []string `json:"addrs"`
}

func partyCommand(c *terminal.Console) *cobra.Command {
	var dir string
	var clients, listen []string
	var all parties
	cmd := &cobra.Command{
		Use:   "party FOLDER --party ADDRESS ... --client PEER --home DIR",
		Short: "Hold shares of a model, and compute on shares of images",
		Long: `Hold the shares in a folder that starling model divide has made, and compute on shares of images of the
clients whose peer IDs --client names, together with the other two parties, until interrupted. Peers are known by their
keys, and what passes between them is encrypted. --party names all three, this one too, in the order of the folders.

--home is the folder of the key of this party. starling worker identity shows the peer ID of a folder, with which the
address is /ip4/HOST/tcp/PORT/p2p/ID.

With -o json, at the start: {"party","addrs"}.`,
		Example: `  starling model party parties/party-1 --home one --listen /ip4/0.0.0.0/tcp/7710 \
      --party /ip4/10.0.0.1/tcp/7710/p2p/12D3KooWA... --party /ip4/10.0.0.2/tcp/7710/p2p/12D3KooWB... \
      --party /ip4/10.0.0.3/tcp/7710/p2p/12D3KooWC... --client 12D3KooWD...`,
		Args: usage.Exactly("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			addrs, err := all.all(cmd)
			if err != nil {
				return err
			}
			if dir == "" || len(clients) == 0 {
				return usage.Error(cmd, errors.New("--home and --client are needed: the folder of the key of this party, and "+
					"the peer ID of a client"))
			}
			key, _, err := home.Open(dir)
			if err != nil {
				return cause.Home(err)
			}
			s, err := triple.Open(args[0])
			if err != nil {
				return explain(err, args[0])
			}
			return explain(linked.Run(cmd.Context(), key.Peer(), listen, s, addrs, clients, func(at []string) {
				if c.Form.Machine() {
					_ = c.Form.Print(os.Stdout, terminal.One(Holding{s.Party + 1, at}, at[0]))
					return
				}
				fmt.Printf("party    %d of 3 of a model with %d classes\n", s.Party+1, len(s.Labels))
				for _, a := range at {
					fmt.Println("address ", a)
				}
			}), args[0])
		},
	}
	f := cmd.Flags()
	all.flag(f)
	f.StringVar(&dir, "home", "", "folder of the key of the party")
	f.StringSliceVar(&clients, "client", nil, "peer ID of a client that is answered (repeatable)")
	f.StringSliceVar(&listen, "listen", []string{"/ip4/127.0.0.1/tcp/7710"}, "multiaddr at which the others reach this "+
		"party (repeatable)")
	return cmd
}
