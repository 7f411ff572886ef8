package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/party"
	"github.com/starling-network/starling/cmd/starling/passphrase"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/internal/keyfile"
	"github.com/starling-network/starling/node/home"
)

// Identity is what there is to know about the keys of a folder. The phrase is the secret itself.
type Identity struct {
	Home    string `json:"home"`
	Address string `json:"address"`
	PeerID  string `json:"peer_id"`
	Made    bool   `json:"made"` // just now
	Phrase  string `json:"phrase,omitempty"`
	// with the phrase of an older folder: of the account, as wallets import it
	Key string `json:"private_key,omitempty"`

	Encrypted bool `json:"encrypted"`
}

func identityCommand(c *terminal.Console) *cobra.Command {
	var dir string
	var phrase, restore, older bool
	var rest passphrase.AtRest
	cmd := &cobra.Command{
		Use:   "identity --home DIR",
		Short: "Show, back up or restore the keys of a folder",
		Long: `Show the account and the peer that the key of a folder stands for. A folder without a key gets one, and
its backup phrase is shown: 24 words of BIP-39 that the key is made of. Write them down, and keep them
from everybody else. --phrase shows the phrase of a key that is there.

--encrypt encrypts the file of the key under a passphrase, or changes it; --decrypt leaves it as it is. Commands that
need the key take the passphrase from --passphrase-file or STARLING_PASSPHRASE_FILE, or ask for it. The backup phrase
needs none.

Wallets of the Cosmos ecosystem open the same account with the words (path m/44'/118'/0'/0/0, prefix starling).
They do not with those of folders that older versions made, whose file "key" has 32 bytes and not 33: with these
--phrase shows the key of the account as well, in the form that wallets import.

--restore reads a phrase from standard input and makes the folder of its key; with --older, that of a folder of
an older version. A key that is there is never overwritten.

With -o json: {"home","address","peer_id","made","phrase","private_key","encrypted"}, the phrase only when it is asked
for or the key is new, the private key only with the phrase of an older folder.`,
		Example: `  starling worker identity --home ~/.starling
  starling worker identity --home ~/.starling --phrase
  starling worker identity --home ~/.starling --encrypt
  starling worker identity --home restored --restore < phrase.txt`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return usage.Error(cmd, errors.New("--home is needed"))
			}
			var h home.Home
			var made bool
			var err error
			if restore {
				h, err = restoreHome(dir, cmd.InOrStdin(), older)
			} else {
				h, made, err = home.Open(dir)
			}
			file := filepath.Join(dir, home.FileKey)
			if err == nil {
				err = rest.Change(file)
			}
			if err != nil {
				return cause.Home(err)
			}
			id := Identity{Home: dir, Address: h.Account().Address(), PeerID: h.PeerID(), Made: made}
			if id.Encrypted, err = keyfile.Encrypted(file); err != nil {
				return err
			}
			if made || phrase {
				id.Phrase = h.Phrase()
				if h.Digest() {
					id.Key = h.Account().Hex()
				}
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(id, id.Address))
			}
			fmt.Printf("account  %s\npeer     %s\nkey      %s\n", id.Address, id.PeerID, passphrase.Secrecy(id.Encrypted))
			party.PrintPhrase(id.Phrase, id.Key, "starling worker identity --home DIR --restore")
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "home", "", "folder of the key")
	f.BoolVar(&phrase, "phrase", false, "show the backup phrase")
	f.BoolVar(&restore, "restore", false, "make the folder from a phrase on standard input")
	party.OlderFlag(f, &older)
	rest.Flags(cmd)
	return cmd
}

// restoreHome reads a phrase.
func restoreHome(dir string, r io.Reader, older bool) (home.Home, error) {
	text, err := party.ReadPhrase(r)
	if err != nil {
		return home.Home{}, err
	}
	return home.Restore(dir, text, older)
}
