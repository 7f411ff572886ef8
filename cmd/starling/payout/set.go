package payout

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/protocol/payout"
)

// named is the address of an account for programs.
type named struct {
	Account   string `json:"account"`
	Address   string `json:"address"`
	EVM       uint64 `json:"evm_chain,omitempty"`
	Keep      uint64 `json:"keep_uzen,omitempty"`
	Text      string `json:"text,omitempty"` // to be signed
	Confirmed bool   `json:"confirmed"`

	raw []byte // of the address: 20, or a key of 32
}

func setCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var o struct {
		key, signature, keep string
		automatic, remove    bool
		evm                  uint64
	}
	cmd := &cobra.Command{
		Use:   "set ADDRESS --home DIR",
		Short: "Name the address to which the coins of an account are paid out",
		Long: `Name the address of an Ethereum-style chain, or the Ed25519 key in base 58 that is the address at a
Solana-style chain, to which the coins of an account are paid out. The owner of the address signs a text (EIP-191), so
that no coin goes to an address which no key opens: without --key and --signature the command prints the text; sign it
in the wallet, such as with personal_sign, and repeat the command with --signature. A key of Ed25519 signs the bytes of
the text. With --key the command signs. It shows the address with its checksum (EIP-55): compare it with the wallet. A
payment to another address cannot be undone.
 With --automatic the spendable coins of the account are withdrawn at the end of every epoch, where they are at
least the minimum of the bridge; --keep stays for fees. With --remove the account has no address any more.

With -o json: {"account","address","evm_chain","keep_uzen","text","confirmed"}; text is there until it is signed.`,
		Example: `  starling payout set 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed --home net/worker-0
  starling payout set 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed --home net/worker-0 --signature 0x4f...1b --automatic
  starling payout set 7Np41oeYqPefeNQEHSv1UDhYrehxin3NStELsSKCT4K2 --home net/worker-0 --key id.json
  starling payout set --remove --home net/worker-0`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.remove {
				return t.Act(cmd, "the folder of the account", func(ctx context.Context, cl *client.Client) error {
					return cl.Payout.Unset(ctx)
				})
			}
			if len(args) != 1 {
				return usage.Error(cmd, errors.New("ADDRESS is needed"))
			}
			n := named{}
			var err error
			if n.raw, err = wantPayee(args[0]); err != nil {
				return err
			}
			n.Address = args[0]
			if len(n.raw) == len(payout.Address{}) {
				n.Address = payout.Address(n.raw).String()
			}
			if o.automatic {
				if n.Keep, err = target.WantAmount(cmd, o.keep); err != nil {
					return err
				}
			}
			err = t.Act(cmd, "the folder of the account that is paid out",
				func(ctx context.Context, cl *client.Client) error {
					return n.set(ctx, cmd, cl, o.key, o.signature, o.automatic, o.evm)
				})
			if err != nil {
				return err
			}
			return n.print(c)
		},
	}
	t.Flags(cmd)
	evmFlag(cmd, &o.evm)
	f := cmd.Flags()
	f.StringVar(&o.key, "key", "", "file with the key of the address, which signs the text")
	f.StringVar(&o.signature, "signature", "", "signature of the text in hexadecimal digits: 65 bytes, or 64 of a key")
	f.BoolVar(&o.automatic, "automatic", false, "withdraw at the end of every epoch to --chain")
	f.StringVar(&o.keep, "keep", "1", "ZEN that stay in the account with --automatic")
	f.BoolVar(&o.remove, "remove", false, "end the payouts of the account")
	return cmd
}

func (n *named) set(ctx context.Context, cmd *cobra.Command, cl *client.Client, key, signature string, automatic bool,
	evm uint64) error {
	head, err := cl.Ledger.Head(ctx)
	if err != nil {
		return err
	}
	n.Account = cl.Address()
	text := payout.Text(head.ChainID, n.Account, n)
	if automatic {
		b, err := bridgeOf(ctx, cl, evm)
		if err != nil {
			return err
		}
		n.EVM = b.EVM
	}
	var proof []byte
	switch {
	case key != "":
		if proof, err = n.sign(cmd, key, text); err != nil {
			return err
		}
	case signature != "":
		if proof, err = hex.DecodeString(strings.TrimPrefix(signature, "0x")); err != nil {
			return usage.Error(cmd, fmt.Errorf("--signature: %w", err))
		}
	default:
		n.Text = text
		return nil
	}
	p, err := payout.NewPayee(head.ChainID, n.Account, n.raw, proof)
	if err != nil {
		return terminal.WithExit(&terminal.Problem{Code: "NOT_THE_OWNER",
			What: "the signature is not of " + n.Address, Why: err.Error(),
			Fix: "sign exactly the text that the command prints without --signature"}, terminal.ExitAuth)
	}
	n.Confirmed = true
	p.EVM, p.Keep = n.EVM, n.Keep
	return cl.Payout.Name(ctx, p, proof)
}

// String is the address.
func (n *named) String() string { return n.Address }

// sign signs the text with the key of the address in a file.
func (n *named) sign(cmd *cobra.Command, file, text string) ([]byte, error) {
	if len(n.raw) == len(payout.Key{}) {
		secret, err := readSecret(cmd, file)
		if err != nil {
			return nil, err
		}
		return ed25519.Sign(secret, []byte(text)), nil
	}
	w, err := readWallet(cmd, file)
	if err != nil {
		return nil, err
	}
	return w.SignText(text), nil
}

func (n *named) print(c *terminal.Console) error {
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(n, n.Address))
	}
	if n.Text != "" {
		fmt.Printf("Sign this text with the wallet of %s, and repeat the command with --signature:\n\n%s\n", n.Address,
			n.Text)
		return nil
	}
	fmt.Printf("account   %s\naddress   %s\n", n.Account, n.Address)
	if n.EVM != 0 {
		printAutomatic(n.EVM, n.Keep)
	}
	return nil
}

func printAutomatic(evm, keep uint64) {
	fmt.Printf("withdraws to chain %d at the end of every epoch, and keeps %s ZEN\n", evm, terminal.Zen(keep))
}
