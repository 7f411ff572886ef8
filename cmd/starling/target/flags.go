package target

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/protocol/coin"
)

// WantAddress reports why a text is no address of an account.
func WantAddress(address string) error {
	if err := wallet.CheckAddress(address); err != nil {
		return terminal.WithExit(&terminal.Problem{
			Code: "ADDRESS_INVALID", What: fmt.Sprintf("%q is not the address of an account", address), Why: err.Error(),
			Fix: "give one that begins with starling1, as starling worker identity prints it",
		}, terminal.ExitUsage)
	}
	return nil
}

// WantAmount reads an amount of ZEN above zero, in uzen.
func WantAmount(cmd *cobra.Command, text string) (uint64, error) {
	amount, err := quantity.ParseAmount(text)
	if err == nil && amount == 0 {
		err = errors.New("0 moves nothing")
	}
	if err != nil {
		return 0, usage.Error(cmd, fmt.Errorf("%q: %w", text, err))
	}
	return uint64(amount), nil
}

// WantCoins reports why a text is no amount of ZEN or of another coin, as far as that is known without a network.
func WantCoins(cmd *cobra.Command, text string) error {
	number, symbol, ok := coin.Split(text)
	if !ok {
		return usage.Error(cmd, fmt.Errorf("%q: give a decimal number of ZEN, or one with the symbol of a coin, such as "+
			"5usdc", text))
	}
	if symbol == "" {
		_, err := WantAmount(cmd, number)
		return err
	}
	return nil
}

// HomeFlag is the folder of an account that ordered a job.
func HomeFlag(cmd *cobra.Command, home *string) {
	cmd.Flags().StringVar(home, "home", "", "folder of the account that ordered the job")
}

// NetworkFlag is the network, where a command needs no account.
func NetworkFlag(cmd *cobra.Command, network *string) {
	cmd.Flags().StringVar(network, "network", "", "HTTP interface of a validator, such as http://127.0.0.1:26601")
}

// WantNetwork reports that the network is missing.
func WantNetwork(cmd *cobra.Command, network string) error {
	if network == "" {
		return usage.Error(cmd, errors.New("--network is needed: the HTTP interface of a validator, such as "+
			"http://127.0.0.1:26601"))
	}
	return nil
}
