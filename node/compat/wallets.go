package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/web/browser"
)

// payer is the wallet that pays new accounts on a chain of its own, which is gone afterwards.
const payer = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

// walletsTimeout is for a few transactions of each version, which CosmJS looks for every three seconds.
const walletsTimeout = 5 * time.Minute

// StartChain starts a chain with coins of the account of a phrase. It returns the address of its RPC, and what ends it.
type StartChain func(ctx context.Context, phrase string) (rpc string, stop func(), err error)

// Wallets starts a chain and has every version of CosmJS read a new account and sign for it. It returns what each
// fails with, "" if it does not.
func Wallets(ctx context.Context, tree string, start StartChain) (failed map[string]string, err error) {
	dir := filepath.Join(tree, "chain", "testdata", "cosmjs")
	if _, err := exec.LookPath("node"); err != nil {
		return nil, fmt.Errorf("%w: node: install Debian's nodejs", browser.ErrMissing)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@cosmjs", "stargate")); err != nil {
		return nil, fmt.Errorf("%w: CosmJS: run npm ci in chain/testdata/cosmjs of the source tree", browser.ErrMissing)
	}
	ctx, cancel := context.WithTimeout(ctx, walletsTimeout)
	defer cancel()
	rpc, stop, err := start(ctx, payer)
	if err != nil {
		return nil, err
	}
	defer stop()
	cmd := exec.CommandContext(ctx, "node", "versions.mjs", rpc, payer)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	raw, err := cmd.Output()
	if err = errors.Join(err, json.Unmarshal(raw, &failed)); err != nil {
		return nil, fmt.Errorf("compat: versions.mjs: %w: %s", err, errs.String())
	}
	return failed, nil
}
