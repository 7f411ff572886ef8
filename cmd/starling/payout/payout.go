// Package payout is starling payout: commands by which an account is paid out on Ethereum-style chains, and by which
// any account brings what the network has signed to the contract there. The rules are in protocol/payout.
package payout

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	nodepayout "github.com/starling-network/starling/node/payout"
	"github.com/starling-network/starling/protocol/payout"
)

// Command is starling payout.
func Command(c *terminal.Console) *cobra.Command {
	return usage.Group("payout", "Be paid on an Ethereum-style chain",
		`Have coins paid out to an address of an Ethereum-style chain. Coins that are withdrawn become part of the total
that the address may claim from a contract there. Once an epoch, validators with two thirds of the stake sign the
totals of all addresses. Any account may bring the signatures to the contract, and can only delay. docs/payouts.md
has the rules and their limits.`,
		setCommand(c), showCommand(c), withdrawCommand(c), proofCommand(c), statementCommand(c),
		relayCommand(c), claimCommand(c),
		depositCommand(c), deployCommand(c), signCommand(c))
}

// evmFlag names a chain.
func evmFlag(cmd *cobra.Command, evm *uint64) {
	cmd.Flags().Uint64Var(evm, "chain", 0, "identifier of the other chain (default: that of the only bridge)")
}

// rpcFlags name a node of another chain, and the key that pays for gas there.
func rpcFlags(cmd *cobra.Command, rpc, key *string) {
	cmd.Flags().StringVar(rpc, "rpc", "", "JSON-RPC of a node of the other chain, such as http://127.0.0.1:8545")
	cmd.Flags().StringVar(key, "key", "", "file with the key that pays for gas there: 64 hexadecimal digits")
}

// bridgeOf is the bridge of a chain, or the only one.
func bridgeOf(ctx context.Context, cl *client.Client, evm uint64) (payout.Bridge, error) {
	p, err := cl.Payout.Rules(ctx)
	if err != nil {
		return payout.Bridge{}, err
	}
	if evm == 0 && len(p.Bridges) == 1 {
		return p.Bridges[0], nil
	}
	var chains []string
	for _, b := range p.Bridges {
		if b.EVM == evm {
			return b, nil
		}
		chains = append(chains, fmt.Sprint(b.EVM))
	}
	if len(chains) == 0 {
		return payout.Bridge{}, terminal.WithExit(&terminal.Problem{Code: "NO_BRIDGE",
			What: "this network pays out on no other chain", Fix: "propose a bridge: docs/payouts.md"},
			terminal.ExitNotFound)
	}
	return payout.Bridge{}, terminal.WithExit(&terminal.Problem{Code: "CHAIN",
		What: fmt.Sprintf("this network has no bridge to chain %d", evm),
		Fix:  "give one of these as --chain: " + strings.Join(chains, ", ")}, terminal.ExitUsage)
}

// paying reads the flags of rpcFlags.
func paying(cmd *cobra.Command, rpc, key string) (nodepayout.RPC, payout.Wallet, error) {
	if rpc == "" {
		return nodepayout.RPC{}, payout.Wallet{}, usage.Error(cmd, errors.New("--rpc is needed: a node of the other chain"))
	}
	w, err := readWallet(cmd, key)
	return nodepayout.RPC{URL: rpc}, w, err
}

// readWallet reads a key of another chain from a file.
func readWallet(cmd *cobra.Command, file string) (payout.Wallet, error) {
	if file == "" {
		return payout.Wallet{}, usage.Error(cmd, errors.New("--key is needed: a file with a key of the other chain"))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return payout.Wallet{}, err
	}
	key, err := hex.DecodeString(strings.TrimPrefix(strings.TrimSpace(string(text)), "0x"))
	if err == nil {
		var w payout.Wallet
		if w, err = payout.NewWallet(key); err == nil {
			return w, nil
		}
	}
	return payout.Wallet{}, terminal.WithExit(&terminal.Problem{Code: "KEY_INVALID",
		What: file + " holds no key of an Ethereum-style chain", Fix: "write 64 hexadecimal digits into it"},
		terminal.ExitAuth)
}

func wantAddress(text string) (payout.Address, error) {
	a, err := payout.ParseAddress(text)
	if err != nil || a.IsZero() {
		return a, terminal.WithExit(&terminal.Problem{Code: "ADDRESS_INVALID",
			What: fmt.Sprintf("%q is no address", text), Why: fmt.Sprint(err),
			Fix: "copy it from the wallet: 0x and 40 hexadecimal digits"}, terminal.ExitUsage)
	}
	return a, nil
}

// wantPayee reads an address of either kind: 20 bytes, or a key of 32.
func wantPayee(text string) ([]byte, error) {
	if strings.HasPrefix(text, "0x") {
		a, err := wantAddress(text)
		return a[:], err
	}
	k, err := payout.ParseKey(text)
	if err != nil {
		return nil, terminal.WithExit(&terminal.Problem{Code: "ADDRESS_INVALID",
			What: fmt.Sprintf("%q is no address", text), Why: err.Error(),
			Fix: "copy it from the wallet: 0x and 40 hexadecimal digits, or a key of Ed25519 in base 58"}, terminal.ExitUsage)
	}
	return k[:], nil
}

// readSecret reads a key of Ed25519 from a file: a seed of 64 hexadecimal digits, or, as wallets of Solana write it, a
// list of the 64 bytes of seed and public key.
func readSecret(cmd *cobra.Command, file string) (ed25519.PrivateKey, error) {
	if file == "" {
		return nil, usage.Error(cmd, errors.New("--key is needed: a file with a key of Ed25519"))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	seed, err := hex.DecodeString(strings.TrimPrefix(strings.TrimSpace(string(text)), "0x"))
	var list []uint16
	if err != nil && json.Unmarshal(text, &list) == nil && len(list) == ed25519.PrivateKeySize {
		seed = seed[:0]
		for _, b := range list {
			seed = append(seed, byte(b))
		}
		if own := ed25519.NewKeyFromSeed(seed[:32]); string(own) == string(seed) && slices.Max(list) < 256 {
			return own, nil
		}
	}
	if err == nil && len(seed) == ed25519.SeedSize {
		return ed25519.NewKeyFromSeed(seed), nil
	}
	return nil, terminal.WithExit(&terminal.Problem{Code: "KEY_INVALID", What: file + " holds no key of Ed25519",
		Fix: "write a seed of 64 hexadecimal digits into it, or the 64 numbers of a wallet of Solana"}, terminal.ExitAuth)
}

// explain explains the errors of the other chain.
func explain(err error) error {
	switch {
	case errors.Is(err, nodepayout.ErrRPC):
		return terminal.WithExit(&terminal.Problem{Code: "OTHER_CHAIN", What: "the other chain did not do it",
			Why: err.Error(),
			Fix: "check --rpc, the ether of --key, and that the bridge is that of the chain"}, terminal.ExitUnreachable)
	case errors.Is(err, query.ErrNotFound):
		return terminal.WithExit(&terminal.Problem{Code: "NOT_SIGNED", What: "the network has signed nothing of it yet",
			Why: err.Error(), Fix: "wait for the end of an epoch: starling payout show"}, terminal.ExitNotFound)
	}
	return err
}
