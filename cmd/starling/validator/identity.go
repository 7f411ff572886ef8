package validator

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/party"
	"github.com/starling-network/starling/cmd/starling/passphrase"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/internal/keyfile"
	"github.com/starling-network/starling/node/operator"
	"github.com/starling-network/starling/node/validator"
)

// Identity is what there is to know about the keys of a validator.
type Identity struct {
	Home     string `json:"home"`
	Operator string `json:"operator"`
	Node     string `json:"node"`
	Phrase   string `json:"phrase,omitempty"`
	// with the phrase of an older folder: of the operator, as wallets import it
	Key string `json:"private_key,omitempty"`

	Encrypted bool `json:"encrypted"`
}

func identityCommand(c *terminal.Console) *cobra.Command {
	var phrase, restore, older bool
	var rest passphrase.AtRest
	cmd := &cobra.Command{
		Use:   "identity --home DIR",
		Short: "Show, back up or restore the keys of a validator",
		Long: `Show the account of the operator and the node that the keys of a validator's folder stand for. With --phrase,
its backup: 24 words of BIP-39 that all of its keys come from. Write them down, and keep them from everybody else.
Wallets of the Cosmos ecosystem open the operator's account with them (path m/44'/118'/0'/0/0, prefix starling); of a
folder that an older version made they do not, and --phrase shows the operator's key as well.

--encrypt encrypts the file of the keys under a passphrase, or changes it; --decrypt leaves it as it is. The validator
takes the passphrase from --passphrase-file or STARLING_PASSPHRASE_FILE when it starts, or asks for it.

--restore reads a phrase from standard input and puts its keys in the folder; starling validator join then makes a
validator of it. Keys that are there are never overwritten. The words do not remember what the validator has
signed: make sure that the lost one does not run any more, and wait until the chain has passed its last block, for
a validator that signs two votes for one step loses a part of the stake and never votes again. With --older the
phrase is that of an older folder.

With -o json: {"home","operator","node","phrase","private_key","encrypted"}, the phrase only when it is asked for, the
key only with that of an older folder.`,
		Example: `  starling validator identity --home net/validator-0
  starling validator identity --home net/validator-0 --phrase
  starling validator identity --home restored --restore < phrase.txt`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, err := keysOf(args[0], restore, older, cmd.InOrStdin())
			if err == nil {
				err = rest.Change(identity.SecretFile(args[0]))
			}
			if err != nil {
				return cause.Home(err)
			}
			id := Identity{Home: args[0], Operator: keys.Operator, Node: keys.Node}
			if id.Encrypted, err = keyfile.Encrypted(identity.SecretFile(args[0])); err != nil {
				return err
			}
			if phrase {
				id.Phrase, id.Key = keys.Phrase, keys.Key
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(id, id.Operator))
			}
			fmt.Printf("operator  %s\nnode      %s\nkeys      %s\n", id.Operator, id.Node, passphrase.Secrecy(id.Encrypted))
			party.PrintPhrase(id.Phrase, id.Key, "starling validator identity --home HOME --restore")
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&phrase, "phrase", false, "show the backup phrase")
	f.BoolVar(&restore, "restore", false, "put the keys of a phrase on standard input in the folder")
	party.OlderFlag(f, &older)
	rest.Flags(cmd)
	return cmd
}

// keysOf reads the keys of a folder, or restores them from a phrase.
func keysOf(dir string, restore, older bool, r io.Reader) (operator.Keys, error) {
	if !restore {
		return operator.ReadKeys(dir)
	}
	text, err := party.ReadPhrase(r)
	if err != nil {
		return operator.Keys{}, err
	}
	return validator.RestoreValidatorKeys(dir, text, older)
}
