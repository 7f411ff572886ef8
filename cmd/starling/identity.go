package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/home"
)

// identity is what there is to know about the keys of a folder. The phrase is the secret itself.
type identity struct {
	Home    string `json:"home"`
	Address string `json:"address"`
	PeerID  string `json:"peer_id"`
	Made    bool   `json:"made"` // just now
	Phrase  string `json:"phrase,omitempty"`
}

func (c *cli) workerIdentity() *cobra.Command {
	var dir string
	var phrase, restore bool
	cmd := &cobra.Command{
		Use:   "identity --home DIR",
		Short: "Show, back up or restore the keys of a folder",
		Long: `Show the account and the peer that the key of a folder stands for. A folder without a key gets one, and
its backup phrase is shown: 24 words of BIP-39 that are the key itself. Write them down, and keep them
from everybody else. --phrase shows the phrase of a key that is there.

--restore reads a phrase from standard input and makes the folder of its key. A key that is there is
never overwritten. The words restore a folder of Starling; the seed that wallets make of such words is
another.

With -o json: {"home","address","peer_id","made","phrase"}, the phrase only when it is asked for or the
key is new.`,
		Example: `  starling worker identity --home ~/.starling
  starling worker identity --home ~/.starling --phrase
  starling worker identity --home restored --restore < phrase.txt`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return usage(cmd, errors.New("--home is needed"))
			}
			var h home.Home
			var made bool
			var err error
			if restore {
				h, err = restoreHome(dir, cmd.InOrStdin())
			} else {
				h, made, err = home.Open(dir)
			}
			if err != nil {
				return homeError(err)
			}
			id := identity{Home: dir, Address: h.Account().Address(), PeerID: h.PeerID(), Made: made}
			if made || phrase {
				id.Phrase = h.Phrase()
			}
			if c.form.Machine() {
				return c.form.Print(os.Stdout, identityAnswer(id))
			}
			fmt.Printf("account  %s\npeer     %s\n", id.Address, id.PeerID)
			if id.Phrase != "" {
				fmt.Printf("\nbackup phrase, for nobody else to see:\n\n  %s\n\n", id.Phrase)
				fmt.Printf("restore it with: starling worker identity --home DIR --restore\n")
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "home", "", "folder of the key")
	f.BoolVar(&phrase, "phrase", false, "show the backup phrase")
	f.BoolVar(&restore, "restore", false, "make the folder from a phrase on standard input")
	return cmd
}

// restoreHome reads a phrase, which is a few hundred bytes.
func restoreHome(dir string, r io.Reader) (home.Home, error) {
	text, err := io.ReadAll(io.LimitReader(r, 4096))
	if err != nil {
		return home.Home{}, err
	}
	return home.Restore(dir, string(text))
}

// homeError gives the errors of a party's folder their codes.
func homeError(err error) error {
	problem, code := &terminal.Problem{What: err.Error()}, terminal.ExitAuth
	switch {
	case errors.Is(err, home.ErrPhrase):
		problem.Code, problem.Fix = "PHRASE_INVALID", "give the 24 words in their order; a word missing or wrong shows in the check"
	case errors.Is(err, home.ErrBadKey):
		problem.Code, problem.Fix = "KEY_UNREADABLE", "restore the folder from its backup phrase in another place"
	case errors.Is(err, home.ErrNoKey):
		problem.Code, problem.Fix, code = "KEY_NOT_FOUND", "give the folder of a worker or verifier, or make one with starling worker identity --home DIR", terminal.ExitNotFound
	case errors.Is(err, home.ErrKeyExists):
		problem.Code, problem.Why, problem.Fix, code = "KEY_EXISTS", "keys are never overwritten", "give another folder", terminal.ExitConflict
	case errors.Is(err, home.ErrInUse):
		problem.Code, problem.Why, problem.Fix, code = "HOME_IN_USE", "one identity works in one process", "stop the process that runs over it, or give another folder", terminal.ExitConflict
	default:
		return err
	}
	return terminal.WithExit(problem, code)
}
