package payout

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/flagfile"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/protocol/payout"
)

func statementCommand(*terminal.Console) *cobra.Command {
	var network, key string
	var chain uint64
	format := "json"
	cmd := &cobra.Command{
		Use:   "statement --key FILE --network URL",
		Short: "Print signed claims of a key of Ed25519 for a program of another chain",
		Long: `Print all that the key in FILE may claim on a Solana-style chain by the latest signed root, one line for each
token: the leaf of the claim, its path to the root and the signature of the key. With --format bytes a line has the
signed bytes and the signature in hexadecimal digits, for programs that read no JSON. No program is needed to check a
statement but the root: contracts/statement.mjs is one that shares no code with this one. FILE has a seed of 64
hexadecimal digits, or the 64 numbers of a wallet of Solana.`,
		Example: `  starling payout statement --key id.json --network http://127.0.0.1:26601
  starling payout statement --key id.json --chain 4503599627370496 --format bytes --network http://127.0.0.1:26601`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			secret, err := readSecret(cmd, key)
			if err != nil {
				return err
			}
			of := payout.Key(secret.Public().(ed25519.PublicKey))
			return abroad(cmd, network, chain, func(ctx context.Context, cl *client.Client, b payout.Bridge) error {
				head, err := cl.Ledger.Head(ctx)
				if err != nil {
					return err
				}
				epoch, claims, err := cl.Payout.Claims(ctx, b.EVM, of.Address())
				if err != nil {
					return err
				}
				for _, p := range claims {
					s, raw, err := payout.Claiming(head.ChainID, b, epoch, p, secret)
					if err != nil {
						return err
					}
					if format == "bytes" {
						fmt.Printf("%x\n", raw)
						continue
					}
					if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	target.NetworkFlag(cmd, &network)
	evmFlag(cmd, &chain)
	cmd.Flags().StringVar(&key, "key", "", "file with the key of Ed25519, which signs")
	cmd.Flags().Var(flagfile.OneOf(&format, "json", "bytes"), "format", "of the lines: json or bytes")
	return cmd
}
