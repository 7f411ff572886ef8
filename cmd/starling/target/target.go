// Package target is the network and the account that a command is about: the flags that name them, queries of the
// network and transactions of the account. Each command defines its own queries and output.
package target

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/session"
)

// About is the address that a command is given, or that of its folder.
func (t *Target) About(cmd *cobra.Command, args []string) (string, error) {
	if err := t.Settle(cmd); err != nil {
		return "", err
	}
	if len(args) == 1 {
		return args[0], WantAddress(args[0])
	}
	if t.Account == "" {
		return "", usage.Error(cmd, errors.New("an address or --home is needed"))
	}
	return t.Account, nil
}

// Act lets the account of the folder do something. whose says what folder is wanted.
func (t *Target) Act(cmd *cobra.Command, whose string, do func(context.Context, *client.Client) error) error {
	if t.Home == "" {
		return usage.Error(cmd, errors.New("--home is needed: "+whose))
	}
	if err := t.Settle(cmd); err != nil {
		return err
	}
	err := session.TransactHome(cmd.Context(), t.Home, t.Network, do)
	switch {
	case errors.Is(err, session.ErrNotRegistered):
		return terminal.WithExit(&terminal.Problem{
			Code: "NOT_REGISTERED", What: t.Account + " takes no part in the network",
			Fix: "register it with starling worker up, which stakes what --stake says",
		}, terminal.ExitNotFound)
	case err != nil:
		return err
	}
	return nil
}

// Target is the network and the account that a question is about.
type Target struct {
	Home, Network, Account string
}

// Flags adds the flags that name them.
func (t *Target) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.Home, "home", "", "folder of a party: its account is looked at, on its network")
	cmd.Flags().StringVar(&t.Network, "network", "", "HTTP interface of a validator (default: that of the folder's "+
		"last worker up)")
}

// Settle fills in what the folder says.
func (t *Target) Settle(cmd *cobra.Command) error {
	if t.Home != "" {
		h, err := home.Read(t.Home)
		if err != nil {
			return cause.Home(err)
		}
		f, err := keystore.ReadParty(t.Home)
		if err != nil {
			return err
		}
		t.Account = h.Account().Address()
		if t.Network == "" {
			t.Network = f.Network
		}
	}
	if t.Network == "" {
		return usage.Error(cmd, errors.New("--network is needed: the HTTP interface of a validator, such as "+
			"http://127.0.0.1:26601"))
	}
	return nil
}

// AskTimeout is how long a validator may take for its answers.
const AskTimeout = 20 * time.Second

// Ask returns the network as the validator sees it, with the account.
func (t *Target) Ask(ctx context.Context) (*inspect.NetworkStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	return inspect.AskNetwork(ctx, t.Network, t.Account)
}
