package payout

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/internal/evmtest"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/node/home"
	nodepayout "github.com/starling-network/starling/node/payout"
	"github.com/starling-network/starling/protocol/payout"
)

// place is a network with a validator, and another chain with the contract.
type place struct {
	*testing.T
	world            *evmtest.World
	network, account string // URL, folder
	key, gas         string // files
	bridge           payout.Bridge
	blocks           chan struct{} // of the network
}

// run runs a command and decodes what it prints as JSON.
func (p *place) run(answer any, args ...string) error {
	p.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		p.Fatal(err)
	}
	cmd := Command(&terminal.Console{Form: terminal.JSON, Quiet: true})
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	out := os.Stdout
	os.Stdout = w
	err = cmd.ExecuteContext(p.Context())
	os.Stdout = out
	_ = w.Close()
	text, _ := io.ReadAll(r)
	if err == nil && answer != nil {
		if err := json.Unmarshal(text, answer); err != nil {
			p.Fatalf("%v: %v\n%s", args, err, text)
		}
	}
	return err
}

func (p *place) must(answer any, args ...string) {
	p.Helper()
	if err := p.run(answer, args...); err != nil {
		p.Fatalf("%v: %v", args, err)
	}
}

// abroad are the arguments of a command that acts on the other chain.
func (p *place) abroad(args ...string) []string {
	return append(args, "--network", p.network, "--rpc", p.world.URL, "--key", p.gas)
}

func (p *place) own(args ...string) []string {
	return append(args, "--network", p.network, "--home", p.account)
}

// tokens are those that an address has.
func (p *place) tokens(of payout.Address) int64 {
	p.Helper()
	return p.world.Tokens(p, p.bridge.Zen(), of)
}

func (p *place) file(name, text string) string {
	p.Helper()
	file := filepath.Join(p.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
	return file
}

// newPlace starts both chains. The genesis has the bridge, whose contract is the first of wallet 0.
func newPlace(t *testing.T) *place { return newPlaceTo(t, evmtest.Chain) }

// newPlaceTo is newPlace with a bridge to another chain.
func newPlaceTo(t *testing.T, evm uint64) *place {
	p := &place{T: t, blocks: make(chan struct{}), world: evmtest.New(t),
		account: filepath.Join(t.TempDir(), "account")}
	p.key, p.gas = p.file("key", hex.EncodeToString(evmtest.Key(1))), p.file("gas", hex.EncodeToString(evmtest.Key(0)))
	p.bridge = payout.Bridge{EVM: evm, Minimum: 1_000_000,
		Contract: p.world.Contract()}
	h, _, err := home.Open(p.account)
	if err != nil {
		t.Fatal(err)
	}
	seed := canon.Sum("payouts")
	doc, err := chain.Genesis("payouts", time.Now().Add(-time.Hour), []identity.Keys{identity.NewKeys(seed)},
		[]chain.Funded{{Address: h.Account().Address(), Amount: 100_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	params, err := json.Marshal([]map[string]any{{"key": "item", "value": payout.Params{EpochBlocks: 5,
		Bridges: []payout.Bridge{p.bridge}}}})
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]map[string]json.RawMessage
	if err := json.Unmarshal(doc.AppState, &state); err != nil {
		t.Fatal(err)
	}
	state["payout"]["params"] = params
	if doc.AppState, err = json.Marshal(state); err != nil {
		t.Fatal(err)
	}
	watcher := nodepayout.NewWatcher([]nodepayout.Source{{EVM: evmtest.Chain, RPC: nodepayout.RPC{URL: p.world.URL}}})
	rpc := porttest.Address(t)
	v, err := chain.Start(t.Context(), chain.Config{Home: t.TempDir(), ChainID: "payouts", Seed: seed[:],
		BlockTime: 50 * time.Millisecond, Genesis: doc, RPC: rpc, Log: t.Output(), Deposits: watcher})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Stop() })
	p.network = "http://" + rpc
	c := client.New(v.Client(), wallet.KeyFromSeed([32]byte{}))
	t.Cleanup(c.Close)
	blocks, err := c.Blocks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() { // the other chain is looked at once in a block
		defer close(done)
		for range blocks {
			if err := watcher.Look(ctx, nodepayout.Source{EVM: evmtest.Chain,
				RPC: nodepayout.RPC{URL: p.world.URL}}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			select {
			case p.blocks <- struct{}{}:
			default:
			}
		}
	}()
	return p
}

// until asks until something is so.
func (p *place) until(what string, so func(s shown) bool) (s shown) {
	p.Helper()
	for range 300 {
		p.must(&s, p.own("show")...)
		if so(s) {
			return s
		}
		<-p.blocks
	}
	p.Fatalf("not %s: %+v", what, s)
	return s
}

// An account proves its address, withdraws ZEN, any account relays the signed root, and the address has the tokens. It
// deposits some of them, and the account has them again once the block is final; a deposit in blocks that the other
// chain replaces is credited once, from the blocks that replace them.
func TestThereAndBack(t *testing.T) {
	p := newPlace(t)
	address := p.world.Wallets[1].Address()
	p.until("a set", func(s shown) bool { return s.Set == 1 })
	var sent struct{ Transactions []nodepayout.Sent }
	p.must(&sent, p.abroad("deploy")...)
	if at := sent.Transactions[0].Contract; at == nil || *at != p.bridge.Contract {
		t.Fatalf("the contract is %v, not %s", at, p.bridge.Contract)
	}

	var n named
	p.must(&n, p.own("set", address.String())...)
	if n.Confirmed || !strings.Contains(n.Text, address.String()) || !strings.Contains(n.Text, n.Account) {
		t.Errorf("%+v", n)
	}
	for _, bad := range [][]string{
		p.own("set", strings.Replace(address.String(), address.String()[40:], "00", 1)), // its checksum is wrong
		p.own("set", address.String(), "--signature", hex.EncodeToString(p.world.Wallets[2].SignText(n.Text))),
		p.own("withdraw", "5"), // no address is set
	} {
		if err := p.run(nil, bad...); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	p.must(&n, p.own("set", address.String(), "--signature",
		hex.EncodeToString(p.world.Wallets[1].SignText(n.Text)))...)
	p.must(&n, p.own("set", address.String(), "--key", p.key)...)
	if !n.Confirmed {
		t.Errorf("%+v", n)
	}
	if err := p.run(nil, p.own("withdraw", "0.9")...); err == nil {
		t.Error("less than the minimum is withdrawn")
	}
	p.must(nil, p.own("withdraw", "25")...)
	p.until("a root", func(s shown) bool { return s.Bridges[0].Tokens[0].Claimable == "25.00" })

	if err := p.run(nil, p.abroad("claim", address.String())...); err == nil {
		t.Error("a claim is paid without the root")
	}
	p.must(&sent, p.abroad("relay")...)
	if len(sent.Transactions) != 1 || sent.Transactions[0].Call != "submitRoot" {
		t.Errorf("%+v", sent)
	}
	p.must(&sent, p.abroad("relay")...)
	if len(sent.Transactions) != 0 {
		t.Errorf("relayed again: %+v", sent)
	}
	var proof proofs
	p.must(&proof, "proof", address.String(), "--network", p.network)
	if len(proof.Claims) != 1 || proof.Claims[0].Total != "25000000" || proof.Claims[0].Token != p.bridge.Zen() {
		t.Errorf("%+v", proof)
	}
	for range 2 { // the second claim is paid already
		p.must(&sent, p.abroad("claim", address.String())...)
		if have := p.tokens(address); have != 25_000_000 {
			t.Fatalf("%d tokens", have)
		}
	}

	p.gas = p.key
	p.must(nil, p.abroad("deposit", "10", n.Account)...)
	if have := p.tokens(address); have != 15_000_000 {
		t.Fatalf("%d tokens after a deposit", have)
	}
	for range 70 { // blocks of the other chain: the one of the deposit becomes final
		p.world.Commit()
	}
	p.until("a deposit", func(s shown) bool { return s.Bridges[0].Credited == 1 })

	fork, err := p.world.Client().HeaderByNumber(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.must(nil, p.abroad("deposit", "3", n.Account)...)
	for range 4 {
		p.world.Commit()
	}
	for range 5 {
		<-p.blocks
	}
	p.until("one deposit alone", func(s shown) bool { return s.Bridges[0].Credited == 1 })
	if err := p.world.Fork(fork.Hash()); err != nil {
		t.Fatal(err)
	}
	for range 70 {
		p.world.Commit()
	}
	p.until("the deposit in its new block", func(s shown) bool { return s.Bridges[0].Credited == 2 })
	if have := p.tokens(address); have != 12_000_000 {
		t.Errorf("%d tokens after the fork", have)
	}
	h, err := home.Read(p.account)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Connect(p.network, h.Account())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	has, err := c.Coins.Balance(t.Context(), n.Account)
	if err != nil || has > 88_000_000 || has < 87_900_000 { // 100 - 25 + 10 + 3, less fees
		t.Errorf("%d uzen (%v)", has, err)
	}
}
