package payout

import (
	"context"
	"fmt"
	"math/big"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/chain/account"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/inspect"
	nodepayout "github.com/starling-network/starling/node/payout"
	"github.com/starling-network/starling/protocol/payout"
)

// baseUnits reads an amount of a coin of the network: its denomination, and base units.
func baseUnits(ctx context.Context, cl *client.Client, text string) (string, *big.Int, string, error) {
	a, err := coins.Parse(ctx, cl.Market, text)
	if err != nil {
		return "", nil, "", err
	}
	denom := a.Denom
	if a.Own() {
		denom = payout.Own
	}
	return denom, a.Base(a.Grains), a.String(), nil
}

func withdrawCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var evm uint64
	cmd := &cobra.Command{
		Use:   "withdraw AMOUNT --home DIR",
		Short: "Let an address claim coins of an account",
		Long: `Move coins of an account to the total that its address may claim on another chain, in the root of the
next epoch. This network takes no fee for it but that of the transaction; the claim costs gas there, about 110,000
units at first and 60,000 later. An amount below the minimum of the bridge is refused: it may be worth less than the
gas. This cannot be undone here; a deposit there returns the coins.`,
		Example: `  starling payout withdraw 25 --home net/worker-0
  starling payout withdraw 25usdc --home net/worker-0 --chain 1`,
		Args: usage.Exactly("AMOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantCoins(cmd, args[0]); err != nil {
				return err
			}
			return t.Act(cmd, "the folder of the account", func(ctx context.Context, cl *client.Client) error {
				b, err := bridgeOf(ctx, cl, evm)
				if err != nil {
					return err
				}
				denom, amount, text, err := baseUnits(ctx, cl, args[0])
				if err != nil {
					return err
				}
				if err := cl.Payout.Withdraw(ctx, b.EVM, denom, amount); err != nil {
					return err
				}
				c.Say(text + " will be claimable in the next epoch: starling payout show")
				return nil
			})
		},
	}
	t.Flags(cmd)
	evmFlag(cmd, &evm)
	return cmd
}

// abroad lets a command act on the other chain for a network.
func abroad(cmd *cobra.Command, network string, evm uint64, do func(context.Context, *client.Client,
	payout.Bridge) error) error {
	if err := target.WantNetwork(cmd, network); err != nil {
		return err
	}
	_, err := inspect.Query(cmd.Context(), network, func(ctx context.Context, cl *client.Client) (struct{}, error) {
		b, err := bridgeOf(ctx, cl, evm)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, do(ctx, cl, b)
	})
	return explain(err)
}

// printSent prints transactions of the other chain.
func printSent(c *terminal.Console, all []nodepayout.Sent) error {
	if all == nil {
		all = []nodepayout.Sent{}
	}
	return terminal.PrintList(c.Form, "transactions", all, func(s nodepayout.Sent) string { return s.Hash.String() },
		[]string{"CALL", "GAS", "TRANSACTION", "CONTRACT"}, func(s nodepayout.Sent) []any {
			at := ""
			if s.Contract != nil {
				at = s.Contract.String()
			}
			return []any{s.Call, s.Gas, s.Hash, at}
		})
}

// other is a command that sends transactions to another chain, with the flags that it needs.
func other(cmd *cobra.Command, do func(cmd *cobra.Command, r nodepayout.RPC, w payout.Wallet, network string,
	evm uint64, args []string) error) *cobra.Command {
	var network, rpc, key string
	var evm uint64
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, w, err := paying(cmd, rpc, key)
		if err != nil {
			return err
		}
		return do(cmd, r, w, network, evm, args)
	}
	target.NetworkFlag(cmd, &network)
	evmFlag(cmd, &evm)
	rpcFlags(cmd, &rpc, &key)
	return cmd
}

const sentJSON = `

With -o json: {"transactions":[{"call","transaction","gas","contract"}]}; contract is there where one was created.`

func relayCommand(c *terminal.Console) *cobra.Command {
	return other(&cobra.Command{
		Use:   "relay --network URL --rpc URL --key FILE",
		Short: "Bring the contract on another chain up to date",
		Long: `Send what the network has signed to the contract on another chain: the sets of validators that it does
not know, in their order, and the latest root. Any account of that chain may, and pays the gas; it can only delay,
because the contract checks the signatures. Repeat the command after each epoch.` + sentJSON,
		Example: `  starling payout relay --network http://127.0.0.1:26601 --rpc http://127.0.0.1:8545 --key gas.key`,
		Args:    usage.Exactly(),
	}, func(cmd *cobra.Command, r nodepayout.RPC, w payout.Wallet, network string, evm uint64, _ []string) error {
		var sent []nodepayout.Sent
		err := abroad(cmd, network, evm, func(ctx context.Context, cl *client.Client, b payout.Bridge) (err error) {
			sent, err = nodepayout.Relay(ctx, cl.Payout, r, w, b)
			return err
		})
		if err != nil {
			return err
		}
		return printSent(c, sent)
	})
}

func claimCommand(c *terminal.Console) *cobra.Command {
	return other(&cobra.Command{
		Use:   "claim ADDRESS --network URL --rpc URL --key FILE",
		Short: "Claim what an address may claim on another chain",
		Long: `Claim for an address all that the latest signed root gives it. The tokens go to the address, whichever key
pays the gas. A wallet or another client can claim with the proof of starling payout proof. If the contract does not
know the root, send it first: starling payout relay.` + sentJSON,
		Example: `  starling payout claim 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed --network http://127.0.0.1:26601 \
    --rpc http://127.0.0.1:8545 --key gas.key`,
		Args: usage.Exactly("ADDRESS"),
	}, func(cmd *cobra.Command, r nodepayout.RPC, w payout.Wallet, network string, evm uint64, args []string) error {
		of, err := wantAddress(args[0])
		if err != nil {
			return err
		}
		var sent nodepayout.Sent
		err = abroad(cmd, network, evm, func(ctx context.Context, cl *client.Client, b payout.Bridge) (err error) {
			sent, err = nodepayout.Claim(ctx, cl.Payout, r, w, b, of)
			return err
		})
		if err != nil {
			return err
		}
		return printSent(c, []nodepayout.Sent{sent})
	})
}

func depositCommand(c *terminal.Console) *cobra.Command {
	return other(&cobra.Command{
		Use:   "deposit AMOUNT ACCOUNT --network URL --rpc URL --key FILE",
		Short: "Deposit tokens of another chain for an account of the network",
		Long: `Deposit tokens in the contract on another chain: AMOUNT in ZEN, or in the coin of a token of the bridge
with its symbol. When the block is final there and validators with two thirds of the stake report it, the account of
the network has the coins. An account that takes no coins has the deposit returned: the sender may claim it.` +
			sentJSON,
		Example: `  starling payout deposit 25usdc starling1qx... --network http://127.0.0.1:26601 \
    --rpc http://127.0.0.1:8545 --key wallet.key`,
		Args: usage.Exactly("AMOUNT", "ACCOUNT"),
	}, func(cmd *cobra.Command, r nodepayout.RPC, w payout.Wallet, network string, evm uint64, args []string) error {
		if err := target.WantCoins(cmd, args[0]); err != nil {
			return err
		}
		if err := target.WantAddress(args[1]); err != nil {
			return err
		}
		to, err := account.Bytes(args[1])
		if err == nil && len(to) != 20 {
			err = fmt.Errorf("%s is of another length than the accounts that take deposits", args[1])
		}
		if err != nil {
			return usage.Error(cmd, err)
		}
		var sent []nodepayout.Sent
		err = abroad(cmd, network, evm, func(ctx context.Context, cl *client.Client, b payout.Bridge) error {
			denom, amount, _, err := baseUnits(ctx, cl, args[0])
			if err != nil {
				return err
			}
			token, _, err := b.Find(denom)
			if err != nil {
				return err
			}
			sent, err = nodepayout.Deposit(ctx, r, w, b, token, amount, to)
			return err
		})
		if err != nil {
			return err
		}
		return printSent(c, sent)
	})
}

func deployCommand(c *terminal.Console) *cobra.Command {
	var network, rpc, key string
	cmd := &cobra.Command{
		Use:   "deploy --network URL --rpc URL --key FILE",
		Short: "Create the contract of a network on another chain",
		Long: `Create the contract by which a network pays out on an Ethereum-style chain, with the present set of
validators. It has no owner: the key pays the gas, and has no right afterwards. Then governance registers it as a
bridge; voters compare its code and its set with those of the network (docs/payouts.md).` + sentJSON,
		Example: `  starling payout deploy --network http://127.0.0.1:26601 --rpc http://127.0.0.1:8545 --key gas.key`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := target.WantNetwork(cmd, network); err != nil {
				return err
			}
			r, w, err := paying(cmd, rpc, key)
			if err != nil {
				return err
			}
			sent, err := inspect.Query(cmd.Context(), network,
				func(ctx context.Context, cl *client.Client) (nodepayout.Sent, error) {
					head, err := cl.Ledger.Head(ctx)
					if err != nil {
						return nodepayout.Sent{}, err
					}
					return nodepayout.Deploy(ctx, cl.Payout, head.ChainID, r, w)
				})
			if err != nil {
				return explain(err)
			}
			return printSent(c, []nodepayout.Sent{sent})
		},
	}
	target.NetworkFlag(cmd, &network)
	rpcFlags(cmd, &rpc, &key)
	return cmd
}

// proof is a claim as ethers and viem take it.
type proof struct {
	Account payout.Address  `json:"account"`
	Token   payout.Address  `json:"token"`
	Total   string          `json:"total"`
	Proof   []payout.Digest `json:"proof"`
}

// proofs are what an address may claim, for clients of the other chain.
type proofs struct {
	EVM      uint64         `json:"evm_chain"`
	Contract payout.Address `json:"contract"`
	Epoch    uint64         `json:"epoch"`
	Root     payout.Digest  `json:"root"`
	Claims   []proof        `json:"claims"`
	Calldata string         `json:"calldata"`
}

func proofCommand(c *terminal.Console) *cobra.Command {
	var network string
	var evm uint64
	cmd := &cobra.Command{
		Use:   "proof ADDRESS --network URL",
		Short: "Print the proof with which an address claims",
		Long: `Print what an address may claim by the latest signed root, with the paths to the root: the argument of
claim of the contract as ethers and viem take it, and the same as calldata for a wallet. total is in base units,
since the beginning: the contract pays what was not claimed before.

With -o json: {"evm_chain","contract","epoch","root","claims":[{"account","token","total","proof"}],"calldata"}.`,
		Example: `  starling payout proof 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed \
    --network http://127.0.0.1:26601 -o json`,
		Args: usage.Exactly("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := wantAddress(args[0])
			if err != nil {
				return err
			}
			out := proofs{Claims: []proof{}}
			err = abroad(cmd, network, evm, func(ctx context.Context, cl *client.Client, b payout.Bridge) error {
				out.EVM, out.Contract = b.EVM, b.Contract
				epoch, claims, err := cl.Payout.Claims(ctx, b.EVM, of)
				if err != nil {
					return err
				}
				out.Epoch, out.Calldata = epoch, fmt.Sprintf("0x%x", payout.CallClaims(claims))
				for _, p := range claims {
					total := new(big.Int).SetBytes(p.Total)
					leaf := payout.Claim{Account: p.Account, Token: p.Token, Total: total}.Leaf()
					out.Root = payout.RootOf(leaf, p.Path)
					out.Claims = append(out.Claims, proof{p.Account, p.Token, total.String(), p.Path})
				}
				return nil
			})
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(out, of.String()))
			}
			fmt.Printf("chain     %d\ncontract  %s\nepoch     %d\n", out.EVM, out.Contract, out.Epoch)
			for _, p := range out.Claims {
				fmt.Printf("token     %s, %s base units in all\n", p.Token, p.Total)
			}
			fmt.Printf("calldata  %s\n", out.Calldata)
			return nil
		},
	}
	target.NetworkFlag(cmd, &network)
	evmFlag(cmd, &evm)
	return cmd
}
