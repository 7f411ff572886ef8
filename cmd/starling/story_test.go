package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/books"
	"github.com/starling-network/starling/client/bridge"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/cmd/starling/catalog"
	"github.com/starling-network/starling/internal/evmtest"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/payout"
	"github.com/starling-network/starling/node/session"
	rules "github.com/starling-network/starling/protocol/payout"
)

// story is a network of processes on which a model is trained and used, another network, of which its stablecoin is,
// and an Ethereum-style chain on which it pays out.
type story struct {
	*testing.T
	dir              string
	network, foreign string // URLs
	net              string // folder of the network
	consumer         string // folder of the account that orders
	world            *evmtest.World
	contract         rules.Address
	usdc             string // denomination of the stablecoin on the network
	stopBooks        func()
}

// A consumer brings a stablecoin from another network, a vote registers it, and a job is ordered in it whose data owe a
// royalty. Three workers train, a fourth poisons and is convicted, and the model is the one that the job determines.
// The model is listed, its files are sold, it is hosted by three providers of which one is killed in the middle of a
// text and one lies, revenue and royalty arrive in the stablecoin, and a worker claims its pay on an Ethereum-style
// chain. At every block both networks hold what they owe.
func TestStory(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	s := newStory(t)
	s.bridge()
	job := s.job()
	local := filepath.Join(s.dir, "local")
	code, stdout, stderr := starling(t, append([]string{"train", job, "--dir", local, "-q", "-o", "json"},
		s.ordered()...)...)
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	root := summary(t, stdout).StateRoot
	texts := s.listData(local, filepath.Dir(job))
	s.offer()
	id, out := s.train(job, root.String())
	model := s.listModel(id, out, texts)
	s.sells(model, out)
	s.hosts(id, out)
	s.royalties(id, texts)
	s.paysOut()
	s.stopBooks()
}

func newStory(t *testing.T) *story {
	s := &story{T: t, dir: t.TempDir(), world: evmtest.New(t)}
	s.contract = s.world.Contract()
	s.net = filepath.Join(s.dir, "net")
	s.consumer = filepath.Join(s.net, "consumer")
	here, there := porttest.Ports(t, 40), porttest.Ports(t, 40)
	s.network, s.foreign = fmt.Sprintf("http://127.0.0.1:%d", here+1), fmt.Sprintf("http://127.0.0.1:%d", there+1)
	up(t, filepath.Join(s.dir, "foreign"), "--workers", "0", "--verifiers", "0", "--block-time", "500ms", "--chain-id",
		"foreign-1", "--coin", "usdc:6", "--port", fmt.Sprint(there))
	s.runs("network", "init", s.net, "--workers", "3", "--verifiers", "2", "--block-time", "200ms", "--port",
		fmt.Sprint(here))
	govern(t, func(state map[string]any) {
		params := state["gov"].(map[string]any)["params"].(map[string]any)
		params["voting_period"], params["expedited_voting_period"] = "5s", "2s"
		state["payout"].(map[string]any)["params"] = []any{map[string]any{"key": "item", "value": rules.Params{
			EpochBlocks: 10, Bridges: []rules.Bridge{{EVM: evmtest.Chain, Contract: s.contract, Minimum: 1_000_000}}}}}
	}, filepath.Join(s.net, "genesis.json"), filepath.Join(s.net, "validator-0", "config", "genesis.json"))
	up(t, s.net)
	for found := 0; found < 5 && t.Context().Err() == nil; {
		<-seldom()
		var status inspect.NetworkStatus
		does(t, &status, "network", "status", "--network", s.network)
		found = len(status.Participants)
	}
	s.watchBooks()
	return s
}

// govern changes the state of a genesis.
func govern(t *testing.T, change func(state map[string]any), files ...string) {
	t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		change(doc["app_state"].(map[string]any))
		if text, err = json.Marshal(doc); err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// runs runs the program, which has to succeed.
func (s *story) runs(args ...string) string {
	s.Helper()
	code, stdout, stderr := starling(s.T, args...)
	if code != 0 {
		s.Fatalf("%v: exit %d\n%s", args, code, stderr)
	}
	return stdout
}

// as are the arguments of a command of an account of the network.
func (s *story) as(home string, args ...string) []string {
	return append(args, "--home", home, "--network", s.network)
}

// watchBooks counts the coins of both networks at each block that it sees, until stopBooks.
func (s *story) watchBooks() {
	ctx, cancel := context.WithCancel(s.Context())
	var done sync.WaitGroup
	s.stopBooks = func() { cancel(); done.Wait() }
	s.Cleanup(func() { s.stopBooks() })
	for _, network := range []string{s.network, s.foreign} {
		c, err := client.Connect(network, wallet.KeyFromSeed([32]byte{}))
		if err != nil {
			s.Fatal(err)
		}
		blocks, err := c.Blocks(ctx)
		if err != nil {
			s.Fatal(err)
		}
		done.Go(func() {
			defer c.Close()
			for b := range blocks {
				all, err := books.Count(ctx, c.At(b.Height))
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					s.Errorf("%s at block %d: %v", network, b.Height, err)
				}
				for _, one := range all {
					if !one.Balanced() {
						s.Errorf("%s at block %d: %+v", network, b.Height, one)
					}
				}
			}
		})
	}
}

// bridge opens a bridge to the other network, relays over it until the end, brings the stablecoin, and registers it by
// a vote.
func (s *story) bridge() {
	s.Helper()
	abroad := filepath.Join(s.dir, "foreign", "consumer")
	ends := []string{"--home", s.consumer, "--network", s.network, "--to", s.foreign, "--to-home", abroad}
	var opened struct {
		Coins []struct {
			Denom string
		}
	}
	does(s.T, &opened, append([]string{"account", "bridge", "open"}, ends...)...)
	s.usdc = bridge.End{Channel: "channel-0"}.Voucher("base/usdc")
	if len(opened.Coins) != 2 || opened.Coins[1].Denom != s.usdc {
		s.Fatalf("%+v, want %s", opened, s.usdc)
	}
	relay := command(s.T, append([]string{"account", "bridge", "relay"}, ends...)...)
	news(s.T, relay)
	s.Cleanup(func() { _ = relay.Process.Signal(os.Interrupt); _ = relay.Wait() })
	s.runs("account", "bridge", "send", s.address(s.consumer), "100000usdc", "--home", abroad, "--network", s.foreign)

	file := filepath.Join(s.dir, "usdc.json")
	draft := s.runs("network", "gov", "coin", "usdc", "--denom", s.usdc, "--decimals", "6")
	writeFile(s.T, file, []byte(draft))
	validator := filepath.Join(s.net, "validator-0")
	var operator inspect.ValidatorEarnings
	does(s.T, &operator, "validator", "earnings", "--home", validator)
	s.runs(s.as(s.consumer, "account", "send", operator.Account, "1")...) // a vote pays gas
	s.runs(s.as(s.consumer, "network", "gov", "propose", file)...)
	s.runs(s.as(validator, "network", "gov", "vote", "1", "yes")...)
	s.until("the stablecoin", func() bool { return s.has(s.consumer, "usdc") == 100_000_000_000 })
}

// until asks until something is so.
func (s *story) until(what string, so func() bool) {
	s.Helper()
	for !so() {
		select {
		case <-seldom():
		case <-s.Context().Done():
			s.Fatalf("waited for %s", what)
		}
	}
}

func (s *story) address(home string) string {
	s.Helper()
	var identity workerIdentity
	does(s.T, &identity, "worker", "identity", "--home", home)
	return identity.Address
}

// has are the grains of a coin that an account can spend.
func (s *story) has(home, symbol string) uint64 {
	s.Helper()
	var a session.Account
	does(s.T, &a, s.as(home, "account", "show")...)
	for _, h := range a.Coins {
		if h.Coin.Symbol == symbol {
			return h.Balance
		}
	}
	return 0
}

// fund gives an account ZEN and stablecoins.
func (s *story) fund(home, zen, usdc string) (address string) {
	s.Helper()
	address = fund(s.T, s.network, s.consumer, home, zen)
	s.runs(s.as(s.consumer, "account", "send", address, usdc+"usdc")...)
	return address
}

func (s *story) home(name string) string { return filepath.Join(s.net, name) }

// job writes the job file: a model of few long texts, which ends no text soon, and belongs to those who train it.
func (s *story) job() string {
	s.Helper()
	job := writeJob(s.T, "budget: {contributor_part: 0.5}\n")
	text, err := os.ReadFile(job)
	if err != nil {
		s.Fatal(err)
	}
	short, long := []byte("max_position_embeddings: 16"), []byte("max_position_embeddings: 64")
	writeFile(s.T, job, bytes.Replace(text, short, long, 1))
	writeFile(s.T, filepath.Join(filepath.Dir(job), "text.jsonl"), unending())
	return job
}

// ordered are the settings of the job.
func (s *story) ordered() []string {
	return []string{"--set", "strategy.workers=4", "--set", "training.global_batch_size=8"}
}

// listData lists the data of the job, which an order owes a royalty for 20 blocks later.
func (s *story) listData(run, folder string) (listing catalog.Listed) {
	s.Helper()
	author := filepath.Join(s.dir, "author")
	fund(s.T, s.network, s.consumer, author, "10")
	does(s.T, &listing, s.as(author, "model", "catalog", "add", folder, "--data", "--title", "Numbers", "--licence",
		"CC0-1.0", "--royalty", "10", "--used-by", run)...)
	if len(listing.Digests) != 1 {
		s.Fatalf("%+v", listing)
	}
	return listing
}

// offer lets a fourth worker join that poisons its updates, and all offer their work for the stablecoin alone.
func (s *story) offer() {
	s.Helper()
	liar := filepath.Join(s.dir, "liar")
	fund(s.T, s.network, s.consumer, liar, "200")
	c := command(s.T, "dev", "adversary", "--act", "poisons", "--home", liar, "--network", s.network, "--threads", "1")
	s.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	says(s.T, news(s.T, c), "offers")
	for _, name := range []string{s.home("worker-0"), s.home("worker-1"), s.home("worker-2"), liar,
		s.home("verifier-0"), s.home("verifier-1")} {
		role := "worker"
		if strings.Contains(name, "verifier") {
			role = "verifier"
		}
		s.runs(s.as(s.consumer, "account", "send", s.address(name), "6000usdc")...)
		s.runs(s.as(name, "market", "offer", "--role", role, "--no-zen", "--price-in", "usdc=100000")...)
		s.runs(s.as(name, "account", "stake", "add", "5000usdc")...)
	}
}

// train orders the job in the stablecoin.
func (s *story) train(job, root string) (id, out string) {
	s.Helper()
	out = filepath.Join(s.dir, "out")
	before := s.has(s.consumer, "usdc")
	code, stdout, stderr := starling(s.T, append(s.as(s.consumer, "train", job, "--dir", out, "-q", "-o", "json", "--set",
		"budget.coin=usdc", "--set", "budget.max_price=1000000"), s.ordered()...)...)
	if code != 0 {
		s.Fatalf("exit %d\n%s", code, stderr)
	}
	run := summary(s.T, stdout)
	convicted := map[string]bool{}
	for _, d := range run.Disputes {
		if d.Verdict == "worker_lied" {
			convicted[d.Worker] = true
		}
	}
	liar := s.address(filepath.Join(s.dir, "liar"))
	if run.StateRoot.String() != root || len(convicted) != 1 || !convicted[liar] {
		s.Errorf("%s instead of %s, convicted %v instead of %s", run.StateRoot, root, convicted, liar)
	}
	if spent := before - s.has(s.consumer, "usdc"); run.Coin.Symbol != "usdc" || run.PaidUzen == 0 || run.FeeUzen == 0 ||
		spent != run.PaidUzen+run.FeeUzen {
		s.Errorf("paid %d and a fee of %d of %s, spent %d", run.PaidUzen, run.FeeUzen, run.Coin.Name(), spent)
	}
	var r api.Receipts
	does(s.T, &r, "job", "receipts", run.Job, "--network", s.network)
	for _, x := range r.Receipts {
		if paid := x.Kind == "work" && x.Amount > 0; paid && (x.Coin == nil || x.Coin.Symbol != "usdc") {
			s.Errorf("%+v", x)
		}
	}
	return run.Job, out
}

// listModel lists the model, whose parents are the data that its order names.
func (s *story) listModel(id, out string, texts catalog.Listed) (listing catalog.Listed) {
	s.Helper()
	does(s.T, &listing, s.as(s.consumer, "model", "catalog", "add", out, "--title", "Counts", "--licence", "Apache-2.0",
		"--job", id, "--parent", fmt.Sprint(texts.Listing))...)
	var owned ownedModel
	does(s.T, &owned, "model", "shares", id, "--network", s.network)
	if len(owned.Holders) < 4 || len(listing.Parents) != 1 || listing.Parents[0].Royalty != "10.00" {
		s.Errorf("%+v, %+v", owned, listing)
	}
	return listing
}

// royalties claims the revenue of a worker that holds shares, and the royalty of the author of the data.
func (s *story) royalties(id string, texts catalog.Listed) {
	s.Helper()
	for home, work := range map[string]string{s.home("worker-0"): id, filepath.Join(s.dir, "author"): texts.Shares} {
		before := s.has(home, "usdc")
		s.runs(s.as(home, "model", "claim", work)...)
		if after := s.has(home, "usdc"); after <= before {
			s.Errorf("%s has %d grains of usdc, and had %d", home, after, before)
		}
	}
}

// paysOut withdraws ZEN of a worker, and claims the tokens on the other chain.
func (s *story) paysOut() {
	s.Helper()
	worker, wallet := s.home("worker-0"), s.world.Wallets[1]
	own, gas := filepath.Join(s.dir, "own.key"), filepath.Join(s.dir, "gas.key")
	writeFile(s.T, own, []byte(hex.EncodeToString(evmtest.Key(1))))
	writeFile(s.T, gas, []byte(hex.EncodeToString(evmtest.Key(0))))
	abroad := func(args ...string) []string {
		return append(args, "--network", s.network, "--rpc", s.world.URL, "--key", gas)
	}
	var sent struct{ Transactions []payout.Sent }
	does(s.T, &sent, abroad("payout", "deploy")...)
	if at := sent.Transactions[0].Contract; at == nil || *at != s.contract {
		s.Fatalf("the contract is %v, not %s", at, s.contract)
	}
	address := wallet.Address()
	s.runs(s.as(worker, "payout", "set", address.String(), "--key", own)...)
	s.runs(s.as(worker, "payout", "withdraw", "5")...)
	s.until("a signed root", func() bool {
		var shown struct {
			Bridges []struct{ Tokens []struct{ Claimable string } }
		}
		does(s.T, &shown, s.as(worker, "payout", "show")...)
		return shown.Bridges[0].Tokens[0].Claimable == "5.00"
	})
	does(s.T, &sent, abroad("payout", "relay")...)
	does(s.T, &sent, abroad("payout", "claim", address.String())...)
	zen := rules.Bridge{EVM: evmtest.Chain, Contract: s.contract}.Zen()
	if has := s.world.Tokens(s, zen, address); has != 5_000_000 {
		s.Errorf("%d tokens", has)
	}
}
