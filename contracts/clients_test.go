package contracts_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/contracts"
	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/protocol/payout"
)

// npm skips a test where the programs of package.json are not installed.
func npm(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no Node.js: `apt install nodejs npm`, and `npm ci --ignore-scripts` in contracts")
	}
	if _, err := os.Stat("node_modules"); err != nil {
		t.Skip("the compiler of Solidity and the other EVM are not installed: `npm ci --ignore-scripts` in contracts")
	}
}

func nodejs(t *testing.T, args ...string) {
	t.Helper()
	inputs.Of(t, args[0], "StarlingPayout.sol", "testdata")
	cmd := exec.CommandContext(t.Context(), "node", args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "compile the contracts, as .ci/run does")

// The compiler of npm makes the committed code of the committed source, whose length has a limit. Without -long the
// digests of the sources are compared.
func TestCommittedCodeIsThatOfTheSource(t *testing.T) {
	source, err := os.ReadFile("StarlingPayout.sol")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(source, []byte("\n")); lines > 400 {
		t.Errorf("the contract has %d lines", lines)
	}
	for name, compiled := range map[string]string{"StarlingPayout.sol": "StarlingPayout.json",
		"testdata/OddToken.sol": "testdata/OddToken.json"} {
		text, err := os.ReadFile(name)
		made, err2 := os.ReadFile(compiled)
		if sum := sha256.Sum256(text); err != nil || err2 != nil || !bytes.Contains(made, fmt.Appendf(nil, "%x", sum)) {
			t.Errorf("%s is not of its source (%v, %v): `npm run compile` in contracts", compiled, err, err2)
		}
	}
	npm(t)
	if !*long {
		t.Skip("with -long the contracts are compiled again, which takes 10 s")
	}
	dir := t.TempDir()
	nodejs(t, "compile.mjs", dir, "StarlingPayout.sol", "testdata/OddToken.sol")
	for _, name := range []string{"StarlingPayout.json", "testdata/OddToken.json"} {
		have, err := os.ReadFile(name)
		made, err2 := os.ReadFile(filepath.Join(dir, name))
		if err != nil || err2 != nil || !bytes.Equal(have, made) {
			t.Errorf("%s is not of its source (%v, %v): `npm run compile` in contracts", name, err, err2)
		}
	}
}

// elsewhere plays the transactions of a chain of go-ethereum in the EVM of @ethereumjs/vm, which has the same results
// with the same gas, and has ethers and viem claim on both.
func (w *world) elsewhere(t *testing.T, claims payout.Claims) {
	npm(t)
	compiled, err := contracts.Payout()
	if err != nil {
		t.Fatal(err)
	}
	type proof struct {
		Account payout.Address  `json:"account"`
		Token   payout.Address  `json:"token"`
		Total   string          `json:"total"`
		Proof   []payout.Digest `json:"proof"`
	}
	var list []proof
	for _, p := range proven(claims, until(len(claims))...) {
		list = append(list, proof{p.Account, p.Token, new(big.Int).SetBytes(p.Total).String(), p.Path})
	}
	var rich []payout.Address
	for _, wallet := range w.Wallets {
		rich = append(rich, wallet.Address())
	}
	text, err := json.Marshal(map[string]any{"chain": chain, "url": w.URL, "rich": rich, "transactions": w.log,
		"contract": w.contract, "abi": compiled.ABI, "claims": list})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "world.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	nodejs(t, "check.mjs", file)
}
