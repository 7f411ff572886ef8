package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/cosmos/cosmos-sdk/crypto/hd"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/web/browser"
)

// payer is the wallet that pays new accounts on a chain of its own, which is gone afterwards.
const payer = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

// walletsTimeout is for a few transactions of each version, which CosmJS looks for every three seconds.
const walletsTimeout = 5 * time.Minute

// Wallets starts a chain and has every version of CosmJS read a new account and sign for it. It returns what each
// fails with, "" if it does not.
func Wallets(ctx context.Context, tree string) (failed map[string]string, err error) {
	dir := filepath.Join(tree, "chain", "testdata", "cosmjs")
	if _, err := exec.LookPath("node"); err != nil {
		return nil, fmt.Errorf("%w: node: install Debian's nodejs", browser.ErrMissing)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@cosmjs", "stargate")); err != nil {
		return nil, fmt.Errorf("%w: CosmJS: run npm ci in chain/testdata/cosmjs of the source tree", browser.ErrMissing)
	}
	ctx, cancel := context.WithTimeout(ctx, walletsTimeout)
	defer cancel()
	secret, err := hd.Secp256k1.Derive()(payer, "", sdk.GetConfig().GetFullBIP44Path())
	if err != nil {
		return nil, err
	}
	address := sdk.AccAddress((&secp256k1.PrivKey{Key: secret}).PubKey().Address()).String()
	home, err := os.MkdirTemp("", "starling-compat-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	c := chain.Config{Home: home, ChainID: "compat", BlockTime: 50 * time.Millisecond,
		Accounts: []chain.Funded{{Address: address, Amount: 1_000_000_000}}}
	for _, port := range []*string{&c.RPC, &c.GRPC} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		*port = l.Addr().String()
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	v, err := chain.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	defer v.Stop()
	cmd := exec.CommandContext(ctx, "node", "versions.mjs", "http://"+c.RPC, payer)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	raw, err := cmd.Output()
	if err = errors.Join(err, json.Unmarshal(raw, &failed)); err != nil {
		return nil, fmt.Errorf("compat: versions.mjs: %w: %s", err, errs.String())
	}
	return failed, nil
}
